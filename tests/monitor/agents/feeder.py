"""``python -m tests.monitor.agents.feeder DIRECTORY REPORTER``: append reports to the spool of an agent.

The file ``numbers`` tells which reports were tried, and which the spool has confirmed: each number is that of
one slot and is tried once. The process may be killed at any time.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import probes
from reporters import report as wire
from reporters.spool.files import SpoolError
from reporters.spool.spool import Spool
from tests.monitor.agents.conditions import Conditions

PAUSE_SECONDS = 0.02  # between two reports: the pace of the feeder
_START = datetime(2026, 1, 1, tzinfo=UTC)


def series_of(reporter: str) -> str:
    return f"fed-{reporter}"


def resource_of(reporter: str) -> str:
    return f"{reporter}-login"


def report_of(reporter: str, number: int) -> wire.Report:
    """Return the report with this *number*, always the same."""
    slot = _START + timedelta(minutes=number)
    return wire.Report(
        run=wire.run_id(series_of(reporter), slot),
        series=series_of(reporter),
        slot=slot,
        reporter=reporter,
        probe=wire.ProbeIdentity("noop", probes.load("noop").version, "0" * 64),
        parameters={},
        started_at=slot,
        seconds=1.0,
        outcome="passed",
        reason="",
        stages=[wire.StageTiming("init", "setup", 1.0, 0.0)],
        metrics=[wire.MetricValue("number", float(number), "runs")],
        failure=None,
        log=[wire.LogLine("info", 0.0, f"number {number}")],
        environment=wire.Environment("login.example.org", "Linux 6.1", "3.11"),
        clock=wire.Clock(slot, synchronised=True),
        bindings={"target": (resource_of(reporter),)},
        usage={},
    )


class Numbers:
    """The numbers of tried reports, and of reports that the spool has confirmed."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "numbers"

    def note(self, word: str, number: int) -> None:
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{word} {number}\n".encode())
        finally:
            os.close(descriptor)

    def of(self, word: str) -> set[int]:
        if not self._file.exists():
            return set()
        lines = [line.split() for line in self._file.read_text(encoding="ascii").splitlines()]
        return {int(line[1]) for line in lines if line[0] == word}


def main(directory: Path, reporter: str) -> None:
    conditions = Conditions(directory)
    numbers = Numbers(directory)
    number = max(numbers.of("tried"), default=-1) + 1
    conditions.limit_files()
    spool = Spool(directory / "state" / "spool", reporter, now=conditions.now)
    while True:
        numbers.note("tried", number)
        try:
            spool.append(wire.to_json(report_of(reporter, number)))
        except SpoolError as error:
            sys.stderr.write(f"{error}\n")
        else:
            numbers.note("confirmed", number)
        number += 1
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
