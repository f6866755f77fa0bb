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
    """The dirty hours of one series.

    Attributes:
        series: primary key of the series, or ``ALL_SERIES``.
        hours: starts of the hours.
    """

    series: int
    hours: Sequence[datetime]


class Engine(Protocol):
    """Operations on samples and rollups that each kind of database executes in its own way.

    Tables and views have the same names and columns in every kind of database, so the SQL outside the
    engines is the same for all.
    """

    name: str  # shown to operators

    def prepare_ahead(self, now: datetime) -> None:
        """Create partitions before they are needed, and compress old partitions if the database can."""

    def partitions(self, table: str) -> list[Partition]:
        """Return the partitions of *table*, oldest first."""

    def drop(self, partition: Partition, is_needed: Callable[[], bool]) -> bool:
        """Drop *partition* with its rows unless *is_needed* returns true; return whether it was dropped.

        *is_needed* is called while no other transaction can write to the partition. Check and drop are one
        transaction, which waits at most ``RETRY_LOCK_TIMEOUT_MILLISECONDS`` for each lock, because requests
        queue behind a waiting lock request. Only writers of this partition may wait until that transaction
        ends.

        Raises:
            OperationalError: another transaction keeps the partition locked (SQLSTATE 55P03).
        """

    def drop_rollups(self, start: datetime, end: datetime) -> None:
        """Drop the rollups from *start* until before *end* if inserting rows is faster than replacing rows.

        All hours of the range must be dirty, and the caller must hold ``AdvisoryLock.ROLLUP``.
        """

    def roll_up(self, dirty: Sequence[SeriesHours]) -> None:
        """Compute the rollups of the *dirty* hours, and of the days that contain them, from current samples.

        The rollups of all metrics of each series are computed; ``ALL_SERIES`` stands for every series.
        """
