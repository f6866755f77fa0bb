"""When requested runs started, by the clock of the site, in a file that survives restarts."""

from __future__ import annotations

from datetime import datetime, timedelta

from reporters.fields import Fields, Unfit, parse_time
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import rfc3339

FILE = "requests.json"
_HOUR = timedelta(hours=1)


class RequestTimes:
    """The starts within an hour, in ``requests.json`` of *state*. One process writes it.

    A damaged file counts as empty.
    """

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._times: list[datetime] | None = None

    def within_hour(self, now: datetime) -> int:
        """Return how many runs started within an hour of *now*; before or after it, as a clock may be set."""
        return len(self._near(now))

    def add(self, now: datetime) -> None:
        """Count a start at *now*.

        Raises:
            StateError: the file cannot be written; the start counts until the next start of the agent.
        """
        self._times = [*self._near(now), now]
        self._state.write_object(FILE, {"started_at": [rfc3339(time) for time in self._times]})

    def _near(self, now: datetime) -> list[datetime]:
        if self._times is None:
            self._times = self._read()
        return [time for time in self._times if abs(now - time) < _HOUR]

    def _read(self) -> list[datetime]:
        try:
            document = self._state.read_object(FILE)
            return [parse_time(text) for text in Fields(document).texts("started_at")] if document else []
        except (StateError, Unfit, ValueError):
            return []
