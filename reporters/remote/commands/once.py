"""``once PROBE``: run a probe now on this host, and print its result. Nothing is sent anywhere."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType

import probes
from reporters.remote import local_run
from reporters.report import Report, to_json
from reporters.run import run

_OUTCOME_STATUS = {"passed": 0, "no_data": 3, "skipped": 3}  # of other outcomes: 1


class Command:
    summary = "Run a probe now on this host and print its result; nothing is sent."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("probe", help=f"one of {', '.join(probes.names())}")
        local_run.add_options(parser)
        parser.add_argument(
            "--state",
            metavar="DIRECTORY",
            help="keep there what the probe remembers between runs, as the position in a sweep",
        )
        parser.add_argument("--json", action="store_true", help="print the report, as it would be sent")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        assignment = local_run.assignment(options.probe, options)
        if options.state:
            directory = os.path.abspath(options.state)  # noqa: PTH100  # used as text
            assignment = replace(assignment, series=f"once-{options.probe}", state_directory=directory)
        with _signals_end_the_run():
            report = run(assignment)
        document = json.dumps(json.loads(to_json(report)), indent=1)
        sys.stdout.write(f"{document if options.json else _lines(report)}\n")
        return _OUTCOME_STATUS.get(report.outcome, 1)


@contextlib.contextmanager
def _signals_end_the_run() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end this process after the run's cleanup, as Ctrl-C does."""
    # Under nohup, SIGHUP stays ignored.
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) == signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # the cleanup comes next
        sys.exit(128 + number)

    for each in numbers:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)


def _lines(report: Report) -> str:
    """Return one line for the outcome, one for the duration of each stage, and one for each metric."""
    lines = [f"{report.outcome} in {report.seconds:.3f} s{f': {report.reason}' if report.reason else ''}"]
    lines += [f"  {stage.name:<28} {stage.seconds:12.3f} s" for stage in report.stages]
    lines += [f"  {metric.name:<28} {metric.value:12.6g} {metric.unit}" for metric in report.metrics]
    return "\n".join(lines)
