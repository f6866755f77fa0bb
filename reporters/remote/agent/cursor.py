"""What the agent must not repeat after a restart: slots up to a time, and requests of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reporters.fields import Fields, Unfit
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import rfc3339

FILE = "slots.json"


@dataclass(frozen=True)
class Cursor:
    """All slots up to *time* are handled, and *requests*, by run, each with the end of its validity."""

    time: datetime
    requests: Mapping[str, datetime] = field(default_factory=dict)


def read(state: StateDirectory) -> Cursor | None:
    """Return the cursor in *state*, or None if there is none or the file is damaged.

    Raises:
        StateError: the file cannot be read.
    """
    try:
        document = state.read_object(FILE)
    except StateError:
        state.read(FILE)  # raises if the disk is at fault, not the content
        return None
    if document is None:
        return None
    try:
        fields = Fields(document)
        requests = fields.fields("requests")
        return Cursor(fields.time("time"), {run: requests.time(run) for run in requests})
    except Unfit:
        return None


def write(state: StateDirectory, cursor: Cursor, now: datetime) -> None:
    """Write *cursor*, without requests that are no longer valid at *now*.

    Raises:
        StateError: the file cannot be written.
    """
    requests = {run: rfc3339(until) for run, until in cursor.requests.items() if until > now}
    state.write_object(FILE, {"time": rfc3339(cursor.time), "requests": requests})
