"""Runs of single probes on this host, for commands that an operator calls."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone

import probes
from probes.base import Probe, UnknownProbe, Value
from reporters.config import Assignment, ResourceConfig
from reporters.remote.errors import UsageFault

_HERE = "here"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run: its parameters, its scratch and its limit."""
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


def assignment(name: str, options: argparse.Namespace) -> Assignment:
    """Return a run of the probe *name* on this host, now.

    Raises:
        UsageFault: there is no such probe, it needs several hosts, or an option is invalid.
    """
    try:
        probe = probes.load(name)
    except UnknownProbe as error:
        raise UsageFault(str(error)) from None
    if options.limit <= 0:
        raise UsageFault(f"--limit: expected a positive number of seconds, got {options.limit:g}")
    if any(role.minimum > 1 for role in probe.roles.values()) or len(probe.roles) > 1:
        raise UsageFault(f"{name} needs several resources; this command runs probes of one host")
    scratch = os.path.abspath(options.scratch or tempfile.gettempdir())  # noqa: PTH100  # used as text
    return Assignment(
        series="once",
        slot=datetime.now(timezone.utc),
        reporter=_HERE,
        probe=name,
        bindings={role: [_HERE] for role in probe.roles},
        resources={_HERE: ResourceConfig(_HERE, _HERE, scratch)},
        parameters={**(probe.trial if options.trial else {}), **parameters(probe, options.set)},
        limit_seconds=options.limit,
    )


def parameters(probe: type[Probe], settings: list[str]) -> Mapping[str, Value]:
    """Parse *settings*, each ``NAME=VALUE``; a value has the type of the parameter's default."""
    return dict(_parameter(probe, text) for text in settings)


def _parameter(probe: type[Probe], text: str) -> tuple[str, Value]:
    name, equals, value = text.partition("=")
    if not equals or name not in probe.parameters:
        known = ", ".join(sorted(probe.parameters)) or "none"
        raise UsageFault(f"--set: expected NAME=VALUE with a parameter of the probe ({known}), got {text!r}")
    kind = type(probe.parameters[name].default)
    try:
        parsed = json.loads(value) if kind is bool else kind(value)
    except ValueError:
        parsed = value
    return name, parsed  # the probe checks its type and its range
