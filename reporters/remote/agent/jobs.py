"""The messages from the agent to its run server; light, because the agent loads them at its start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reporters.config import Assignment

LENGTH_BYTES = 8  # before each pickled message
UNWRITTEN = 74  # exit status of a run's process that cannot write its report


@dataclass(frozen=True)
class RunJob:
    """A run to start, or with *outcome* a report to write of a run that did not take place.

    Attributes:
        name: of the run, unique among those in flight.
        outcome, reason: of the report; empty: run the probe.
        result: the file for the report.
    """

    name: str
    assignment: Assignment
    result: Path
    outcome: str = ""
    reason: str = ""


@dataclass(frozen=True)
class StopRun:
    """Send *signal_number* to the process of the run *name*."""

    name: str
    signal_number: int
