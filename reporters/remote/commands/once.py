"""``once PROBE``: run a probe now on this host, and print its result. Nothing is sent anywhere."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone

import probes
from probes.base import Probe, UnknownProbe, Value
from reporters.config import Assignment, ResourceConfig
from reporters.remote.errors import UsageFault
from reporters.report import Report, to_json
from reporters.run import run

_HERE = "here"
_OUTCOME_STATUS = {"passed": 0, "no_data": 3, "skipped": 3}  # of other outcomes: 1


class Command:
    summary = "Run a probe now on this host and print its result; nothing is sent."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("probe", help=f"one of {', '.join(probes.names())}")
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter of the probe; may be repeated",
        )
        parser.add_argument("--trial", action="store_true", help="begin with small parameters")
        parser.add_argument(
            "--scratch", default="", help="directory to work in (default: that of temporary files)"
        )
        parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="default: 600")
        parser.add_argument("--json", action="store_true", help="print the report, as it would be sent")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        report = run(_assignment(options))
        document = json.dumps(json.loads(to_json(report)), indent=1)
        sys.stdout.write(f"{document if options.json else _lines(report)}\n")
        return _OUTCOME_STATUS.get(report.outcome, 1)


def _assignment(options: argparse.Namespace) -> Assignment:
    try:
        probe = probes.load(options.probe)
    except UnknownProbe as error:
        raise UsageFault(str(error)) from None
    if options.limit <= 0:
        raise UsageFault(f"--limit: expected a positive number of seconds, got {options.limit:g}")
    if any(role.minimum > 1 for role in probe.roles.values()) or len(probe.roles) > 1:
        raise UsageFault(f"{options.probe} needs several resources; `once` runs probes of one host")
    scratch = os.path.abspath(options.scratch or tempfile.gettempdir())  # noqa: PTH100  # used as text
    return Assignment(
        series="once",
        slot=datetime.now(timezone.utc).replace(microsecond=0),
        reporter=_HERE,
        probe=options.probe,
        bindings={role: [_HERE] for role in probe.roles},
        resources={_HERE: ResourceConfig(_HERE, _HERE, scratch)},
        parameters={**(probe.trial if options.trial else {}), **_parameters(probe, options.set)},
        limit_seconds=options.limit,
    )


def _parameters(probe: type[Probe], settings: list[str]) -> Mapping[str, Value]:
    """Parse *settings*, each ``NAME=VALUE``; a value has the type of the parameter's default."""
    return dict(_parameter(probe, text) for text in settings)


def _parameter(probe: type[Probe], text: str) -> tuple[str, Value]:
    name, equals, value = text.partition("=")
    if not equals or name not in probe.parameters:
        known = ", ".join(sorted(probe.parameters)) or "none"
        raise UsageFault(f"--set: expected NAME=VALUE with a parameter of the probe ({known}), got {text!r}")
    kind = type(probe.parameters[name].default)
    if kind is str:
        return name, value
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    return name, parsed  # the probe checks its type and its range


def _lines(report: Report) -> str:
    """Return one line for the outcome, one for the duration of each stage, and one for each metric."""
    lines = [f"{report.outcome} in {report.seconds:.3f} s: {report.reason}"]
    lines += [f"  {stage.name:<28} {stage.seconds:12.3f} s" for stage in report.stages]
    lines += [f"  {metric.name:<28} {metric.value:12.6g} {metric.unit}" for metric in report.metrics]
    return "\n".join(lines)
