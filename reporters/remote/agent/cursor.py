"""What the agent must not repeat after a restart: slots up to a time, and requests of users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reporters.fields import Fields, Unfit, parse_object
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import rfc3339

FILE = "slots.jsonl"
_MOST_FILE_BYTES = 256 * 1024
_MOST_LINE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Cursor:
    """All slots up to *time* are handled, and *requests*, by run, each with the end of its validity."""

    time: datetime
    requests: Mapping[str, datetime] = field(default_factory=dict)


def read(state: StateDirectory) -> Cursor | None:
    """Return the cursor in *state*, or None if there is none. A line that a crash has cut off does not count.

    Raises:
        StateError: the file cannot be read.
    """
    cursor: Cursor | None = None
    for line in (state.read(FILE) or b"").splitlines():
        change = _parsed(line)
        if change is not None:
            requests = cursor.requests if cursor else {}
            cursor = Cursor(change.time, {**requests, **change.requests})
    return cursor


class CursorFile:
    """Keeps the cursor in *state*, where no other process does so.

    A change is a line that is appended to the file and flushed before ``keep`` returns: so a run that the
    agent starts afterwards is not started again, whatever fails. The replacement of the file, at first and
    when it is long, takes a second flush, of its directory.
    """

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._kept: Mapping[str, datetime] = {}
        self._file_bytes = _MOST_FILE_BYTES  # the first time, a line that was cut off goes

    def keep(self, cursor: Cursor, now: datetime) -> None:
        """Write *cursor*, without requests that are no longer valid at *now*.

        Raises:
            StateError: the file cannot be written.
        """
        valid = {run: until for run, until in cursor.requests.items() if until > now}
        new = {run: until for run, until in valid.items() if self._kept.get(run) != until}
        line = _line(cursor.time, new)
        if self._file_bytes + len(line) > _MOST_FILE_BYTES or not self._append(line):
            self._file_bytes = _MOST_FILE_BYTES  # if this fails, there may be a part of a line
            line = _line(cursor.time, valid)
            self._state.write(FILE, line)
            self._file_bytes = len(line)
        self._kept = valid

    def _append(self, line: bytes) -> bool:
        try:
            self._state.append(FILE, line)
        except StateError:  # removed, or a full disk: a whole file may be shorter
            return False
        self._file_bytes += len(line)
        return True


def _line(time: datetime, requests: Mapping[str, datetime]) -> bytes:
    document = {"time": rfc3339(time), "requests": {run: rfc3339(until) for run, until in requests.items()}}
    return f"{json.dumps(document)}\n".encode()


def _parsed(line: bytes) -> Cursor | None:
    try:
        fields = Fields(parse_object(line, max_bytes=_MOST_LINE_BYTES))
        requests = fields.fields("requests")
        return Cursor(fields.time("time"), {run: requests.time(run) for run in requests})
    except Unfit:
        return None
