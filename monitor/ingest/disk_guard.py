"""Is there room in the depot? Asked before reports are taken: what cannot wait needs what is left.

A disk that is full stops PostgreSQL itself: it cannot even write that something was deleted. So reports are
refused while there still is a reserve, their senders keep them and come again, and the depot goes on keeping
its ledger. How much is free is known where the data are on a disk of this host, or where somebody said how
large the database may become; where neither is known, PostgreSQL says when it is full.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import OperationalError, connection

from monitor.units import humanised

RETRY_SECONDS = 30  # senders come again after
ASKED_EVERY_SECONDS = 5.0
DISK_FULL = "53100"  # SQLSTATE


class DepotFull(OperationalError):
    """The depot has no room for more: nothing was stored, and the same will be taken when there is."""


@dataclass(frozen=True)
class Room:
    """What is *free_bytes*, of which reports leave *reserve_bytes* for others."""

    free_bytes: int
    reserve_bytes: int

    @property
    def suffices(self) -> bool:
        return self.free_bytes > self.reserve_bytes

    def __str__(self) -> str:
        free, reserve = (humanised(max(count, 0), "bytes") for count in (self.free_bytes, self.reserve_bytes))
        return f"the depot has {free} left, and {reserve} are its reserve"


class Gauge:
    """Remembers for a moment what *measure* said, so that to ask costs nothing."""

    def __init__(
        self, measure: Callable[[], Room | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._measure, self._clock = measure, clock
        self._lock = threading.Lock()
        self._said: Room | None = None
        self._until = float("-inf")

    def room(self) -> Room | None:
        """How much room there is, as of some seconds ago; None where nobody knows."""
        with self._lock:
            if self._clock() >= self._until:
                self._remember(self._measure())
            return self._said

    def forget(self) -> None:
        """Ask anew, next time."""
        self._until = float("-inf")

    def told_full(self) -> None:
        """PostgreSQL said that its disk is full, whatever was measured: do not ask it again at once."""
        with self._lock:
            self._remember(Room(0, settings.GRIDCAST_DEPOT_RESERVE_BYTES))

    def _remember(self, room: Room | None) -> None:
        self._said, self._until = room, self._clock() + ASKED_EVERY_SECONDS


def measured() -> Room | None:
    """The least of what the disk and the budget leave; None where neither is known."""
    known = [free for free in (_on_disk(), _in_budget()) if free is not None]
    return Room(min(known), settings.GRIDCAST_DEPOT_RESERVE_BYTES) if known else None


gauge = Gauge(measured)


def refuse_without_room() -> None:
    """Raises DepotFull: only the reserve is left."""
    room = gauge.room()
    if room is not None and not room.suffices:
        raise DepotFull(f"{room}: reports are taken again when there is more")


@contextmanager
def told_when_full() -> Iterator[None]:
    """Around what writes reports: raises DepotFull where PostgreSQL found its disk full."""
    try:
        yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != DISK_FULL:
            raise
        gauge.told_full()
        raise DepotFull(f"the disk of the depot is full: {error}".strip()) from error


def _on_disk() -> int | None:
    """Bytes that are free where the data lie, if that is a directory of this host."""
    directory: Path | None = settings.GRIDCAST_DEPOT_DIRECTORY
    if directory is None:
        return None
    try:
        found = os.statvfs(directory)
    except OSError:  # not made yet, or not ours to see
        return None
    return found.f_bavail * found.f_frsize


def _in_budget() -> int | None:
    """Bytes that the database may still grow by, if somebody said how large it may become."""
    most: int | None = settings.GRIDCAST_DEPOT_MAX_BYTES
    if most is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return most - int(cursor.fetchone()[0])
