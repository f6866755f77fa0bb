"""Refuse reports while only the disk reserve is left: the reserve is for the ledger.

PostgreSQL stops when its disk is full: it cannot even record deletions. Reports are therefore refused
earlier: senders keep them and retry, and the ledger continues. The free space is known if the data are on a
disk of this host, or if ``GRIDCAST_DEPOT_MAX_BYTES`` limits the database. Otherwise reports are refused only
after PostgreSQL has reported a full disk.
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

from monitor.core.units import humanised

RETRY_SECONDS = 30  # the Retry-After of refused senders
MEASURE_EVERY_SECONDS = 5.0
DISK_FULL = "53100"  # SQLSTATE


class DepotFull(OperationalError):
    """The disk of the depot is full. No report was stored; retry when there is space."""


@dataclass(frozen=True)
class FreeSpace:
    """The free space of the depot: reports may use *free_bytes* less *reserve_bytes*."""

    free_bytes: int
    reserve_bytes: int

    @property
    def suffices(self) -> bool:
        return self.free_bytes > self.reserve_bytes

    def __str__(self) -> str:
        free, reserve = (humanised(max(count, 0), "bytes") for count in (self.free_bytes, self.reserve_bytes))
        return f"the depot has {free} free and keeps {reserve} in reserve"


class FreeSpaceGauge:
    """Caches the free space that *measure* returns for ``MEASURE_EVERY_SECONDS``; None: unknown."""

    def __init__(
        self, measure: Callable[[], FreeSpace | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._measure, self._clock = measure, clock
        self._lock = threading.Lock()
        self._space: FreeSpace | None = None
        self._valid_until = float("-inf")

    def space(self) -> FreeSpace | None:
        """Return the free space, at most ``MEASURE_EVERY_SECONDS`` old; None if it is unknown."""
        with self._lock:
            if self._clock() >= self._valid_until:
                self._cache(self._measure())
            return self._space

    def reset(self) -> None:
        """Measure again at the next call of ``space``."""
        self._valid_until = float("-inf")

    def report_full(self) -> None:
        """Cache that no space is free, whatever *measure* returned: PostgreSQL has reported a full disk."""
        with self._lock:
            self._cache(FreeSpace(0, settings.GRIDCAST_DEPOT_RESERVE_BYTES))

    def _cache(self, space: FreeSpace | None) -> None:
        self._space, self._valid_until = space, self._clock() + MEASURE_EVERY_SECONDS


def measure_space() -> FreeSpace | None:
    """Return the lesser of the disk's free space and the space left in the size limit; None if unknown."""
    limits = [free for free in (_free_on_disk(), _free_in_limit()) if free is not None]
    return FreeSpace(min(limits), settings.GRIDCAST_DEPOT_RESERVE_BYTES) if limits else None


gauge = FreeSpaceGauge(measure_space)


def require_space() -> None:
    """Raise DepotFull if only the reserve is left."""
    space = gauge.space()
    if space is not None and not space.suffices:
        raise DepotFull(f"{space}; reports are accepted again when more is free")


@contextmanager
def raising_depot_full() -> Iterator[None]:
    """Raise DepotFull if a statement of the block fails because PostgreSQL's disk is full."""
    try:
        yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != DISK_FULL:
            raise
        gauge.report_full()
        raise DepotFull(f"the disk of the depot is full: {error}".strip()) from error


def _free_on_disk() -> int | None:
    """Return the free bytes of the depot's disk; None if the depot's directory is unset or unreadable."""
    directory: Path | None = settings.GRIDCAST_DEPOT_DIRECTORY
    if directory is None:
        return None
    try:
        disk = os.statvfs(directory)
    except OSError:  # not created yet, or not readable
        return None
    return disk.f_bavail * disk.f_frsize


def _free_in_limit() -> int | None:
    """Return the bytes by which the database may still grow; None if its size is not limited."""
    limit: int | None = settings.GRIDCAST_DEPOT_MAX_BYTES
    if limit is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return limit - int(cursor.fetchone()[0])
