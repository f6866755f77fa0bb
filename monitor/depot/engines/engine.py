"""What an engine of the depot does: everything about samples by time that databases do differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class Part:
    """One part by time of a table: a partition, or a chunk. *start* is in it, *end* is not."""

    table: str
    name: str
    start: datetime
    end: datetime
    bytes: int
    is_compressed: bool = False

    @property
    def title(self) -> str:
        """What it has, for people; a chunk's name says nothing."""
        return f"{self.table}, {self.start:%Y-%m-%d} to {self.end:%Y-%m-%d}"


EVERY = 0  # in the place of a series' key: all of them


@dataclass(frozen=True)
class Hours:
    """The hours, each by its start, in which something of *series* (its key) is not as it was rolled up."""

    series: int
    hours: Sequence[datetime]


class Engine(Protocol):
    """One kind of database. What reads and writes rows is the same for all: tables and views have the same
    names and columns."""

    name: str  # as people know it

    def prepare_ahead(self, now: datetime) -> None:
        """Make places before they are needed, and let parts that are old enough take less space."""

    def parts(self, table: str) -> list[Part]:
        """The parts of a partitioned table, oldest first."""

    def drop(self, part: Part, is_needed: Callable[[], bool]) -> bool:
        """Give the space of *part* back, with all that is in it; whether it was. It stays where something
        *is_needed*, which is asked when nobody else can write into it any more.

        All of it is done, or nothing; nobody else waits for longer than ``YIELDING_MILLISECONDS``, but who
        writes into this part.

        Raises:
            OperationalError: somebody else keeps it locked (SQLSTATE 55P03).
        """

    def discard(self, start: datetime, end: datetime) -> None:
        """All rollups from *start* until before *end* are marked, and about to be made anew: those may go
        that take longer to be replaced than to be made. To be called while nobody else rolls."""

    def roll(self, stale: Sequence[Hours]) -> None:
        """Bring the rollups of these hours, and of their days, to what the samples are now; of all metrics
        of a series, and of all series where it says ``EVERY``. Done when it returns."""
