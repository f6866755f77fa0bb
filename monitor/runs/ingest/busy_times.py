"""Estimate when an agent whose backlog found no place should try again.

With hundreds of backlogs and a fixed time, nine of ten requests found no place, and cost as much processor
time as the reports that were stored.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_SECONDS, MOST_SECONDS = 1, 300
TRIES = 4  # of each reporter while the others deliver a batch each: else places would be empty at times
_FORGOTTEN_AFTER = 2  # times the seconds that it was told to wait
_FIRST_SECONDS = 0.5  # of a batch
_NEW_SHARE = 0.1  # of the newest batch in the mean


class BusyTimes:
    """The backlogs that wait, as this process knows them. Thread-safe. *steady* returns seconds."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}  # when a waiting reporter is forgotten
        self._batch_seconds = _FIRST_SECONDS

    @contextmanager
    def storing(self, reporter: str) -> Iterator[None]:
        """Measure the seconds of the block, in which a batch of *reporter* is stored."""
        began = self._steady()
        yield
        with self._lock:
            self._until.pop(reporter, None)
            self._batch_seconds += _NEW_SHARE * (self._steady() - began - self._batch_seconds)

    def retry_seconds(self, reporter: str, places: int) -> int:
        """Return the seconds after which *reporter* should try again: its batch found none of *places* free.

        They grow with the number of the reporters that wait, and with the time that a batch takes.
        """
        with self._lock:
            now = self._steady()
            self._until = {name: until for name, until in self._until.items() if until > now}
            waiting = len(self._until | {reporter: now})
            seconds = waiting * self._batch_seconds / places / TRIES
            retry_seconds = round(min(max(seconds, LEAST_SECONDS), MOST_SECONDS))
            self._until[reporter] = now + _FORGOTTEN_AFTER * retry_seconds
            return retry_seconds
