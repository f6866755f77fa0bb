"""Declare the contract of an engine: operations on samples that differ between kinds of databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class Partition:
    """A native partition or a chunk of *table*; *start* is included, *end* is not."""

    table: str
    name: str
    start: datetime
    end: datetime
    bytes: int
    is_compressed: bool = False

    @property
    def title(self) -> str:
        """Return the table and the days: the name of a chunk means nothing to an operator."""
        return f"{self.table}, {self.start:%Y-%m-%d} to {self.end:%Y-%m-%d}"


ALL_SERIES = 0  # stands for every series where a series' key is expected


@dataclass(frozen=True)
class SeriesHours:
    """The dirty *hours* of *series* (its primary key); an hour is given by its start."""

    series: int
    hours: Sequence[datetime]


class Engine(Protocol):
    """One kind of database. Tables and views have the same names and columns on all of them, so all other
    statements are the same."""

    name: str  # shown to operators

    def prepare_ahead(self, now: datetime) -> None:
        """Create partitions before they are needed, and compress those that are old enough."""

    def partitions(self, table: str) -> list[Partition]:
        """Return the partitions of *table*, oldest first."""

    def drop(self, partition: Partition, is_needed: Callable[[], bool]) -> bool:
        """Drop *partition* with its rows unless it *is_needed*; return whether it was dropped.

        *is_needed* is called while no other transaction can write to the partition. Everything happens in one
        transaction. It waits at most ``RETRY_LOCK_TIMEOUT_MILLISECONDS`` for each lock, because requests
        queue behind a waiting one; only writers of this partition may wait until its end.

        Raises:
            OperationalError: another transaction keeps the partition locked (SQLSTATE 55P03).
        """

    def drop_rollups(self, start: datetime, end: datetime) -> None:
        """Drop the rollups from *start* until before *end* if replacing them takes longer than new rows.

        All hours of the range must be dirty, and the caller must hold ``AdvisoryLock.ROLLUP``.
        """

    def roll_up(self, dirty: Sequence[SeriesHours]) -> None:
        """Compute the rollups of the *dirty* hours, and of the days that contain them, from current samples.

        The rollups of all metrics of a series are computed; for ``ALL_SERIES``, those of every series."""
