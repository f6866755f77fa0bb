"""The messages from the agent to its run server: lines of JSON, as the agent has no other use for pickle."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Union

from reporters.config import Assignment, ResourceConfig

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

    def to_line(self) -> bytes:
        assignment = {**asdict(self.assignment), "slot": self.assignment.slot.isoformat()}
        return _line({**vars(self), "assignment": assignment, "result": str(self.result)})


@dataclass(frozen=True)
class StopRun:
    """Send *signal_number* to the process of the run *name*."""

    name: str
    signal_number: int

    def to_line(self) -> bytes:
        return _line(vars(self))


@dataclass(frozen=True)
class EndEarlierRuns:
    """Kill the processes of runs whose reporter has ended."""

    def to_line(self) -> bytes:
        return _line({})


Message = Union[RunJob, StopRun, EndEarlierRuns]


def parse_message(line: bytes) -> Message:
    """Return the message in *line*, which ``to_line`` has made."""
    values = json.loads(line)
    if not values:
        return EndEarlierRuns()
    if "assignment" not in values:
        return StopRun(**values)
    assignment = values["assignment"]
    resources = {name: ResourceConfig(**each) for name, each in assignment["resources"].items()}
    slot = datetime.fromisoformat(assignment["slot"])
    run = Assignment(**{**assignment, "slot": slot, "resources": resources})
    return RunJob(**{**values, "assignment": run, "result": Path(values["result"])})


def _line(values: dict[str, Any]) -> bytes:
    return f"{json.dumps(values)}\n".encode()
