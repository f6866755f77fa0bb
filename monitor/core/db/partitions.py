"""Create native partitions by time before rows need them: one per month, one per year before 2020."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit

PARTITIONED = ("monitor_run", "monitor_rawreport", "monitor_sample")
MONTHS_AHEAD = 2
_EXISTING = "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND (relispartition OR relkind = 'p')"

MONTHLY_FROM = 2020  # imported histories reach back decades and have few rows a year
LATEST = datetime(9000, 1, 1, tzinfo=UTC)  # no row is later; the end of the last year has no date


@dataclass(frozen=True, order=True)
class PartitionRange:
    """The time range of a partition: *start* is included, *end* is not; both are UTC midnights."""

    start: datetime
    end: datetime

    @property
    def label(self) -> str:
        """Return the suffix of the partition's name."""
        return f"{self.start:%Y_%m}" if self.start.year >= MONTHLY_FROM else f"{self.start:%Y}"


def range_of(time: datetime) -> PartitionRange:
    """Return the range of the partition that holds *time*, which must have a time zone."""
    utc = time.astimezone(UTC)
    if utc.year < MONTHLY_FROM:
        return PartitionRange(datetime(utc.year, 1, 1, tzinfo=UTC), datetime(utc.year + 1, 1, 1, tzinfo=UTC))
    year, month = divmod(utc.year * 12 + utc.month, 12)
    return PartitionRange(
        datetime(utc.year, utc.month, 1, tzinfo=UTC), datetime(year, month + 1, 1, tzinfo=UTC)
    )


def months(column: str, first: datetime, last: datetime) -> str:
    """Return an SQL condition that *column* lies in the partitions from *first* to *last*.

    Constants prune partitions when a statement is planned. Parameters do not in a prepared statement, whose
    plan is kept: each execution would lock and open all partitions, so its cost would grow with the history.
    """
    start, end = range_of(min(first, LATEST)).start, range_of(min(last, LATEST)).end
    return f"{column} >= '{start.isoformat()}' AND {column} < '{end.isoformat()}'"


def ranges_ahead(now: datetime, months: int) -> list[PartitionRange]:
    """Return the partition ranges of *now* and of the next *months* months."""
    ranges = [range_of(now)]
    while len(ranges) <= months:
        ranges.append(range_of(ranges[-1].end))
    return ranges


def create_for(times: Iterable[datetime]) -> None:
    """Create the missing partitions for rows at *times*, in the caller's transaction."""
    _create({range_of(time) for time in times})


def create_ahead(now: datetime) -> None:
    """Create the missing partitions for *now* and for the next ``MONTHS_AHEAD`` months."""
    with transaction.atomic():
        _create(ranges_ahead(now, MONTHS_AHEAD))


def _create(ranges: Iterable[PartitionRange]) -> None:
    wanted = {f"{table}_{each.label}": (table, each) for each in sorted(ranges) for table in PARTITIONED}
    if not _missing(wanted):
        return
    lock_until_commit(AdvisoryLock.PARTITIONS)
    for name in _missing(wanted):
        _attach(*wanted[name])


def _missing(wanted: Mapping[str, tuple[str, PartitionRange]]) -> list[str]:
    """Return the names of *wanted* that do not exist; hypertables create their chunks themselves."""
    with connection.cursor() as cursor:
        cursor.execute(_EXISTING, [[*PARTITIONED, *wanted]])
        existing = {name for (name,) in cursor.fetchall()}
    return [name for name, (table, _) in wanted.items() if table in existing and name not in existing]


def _attach(table: str, partition_range: PartitionRange) -> None:
    """Create a partition, also as an account of a service, which owns no table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT monitor_attach_partition(%s, %s, %s, %s)",
            [table, partition_range.label, partition_range.start, partition_range.end],
        )
