"""Native partitions by time: a month each, or a year of what is long ago, made before rows need them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit

PARTITIONED = ("monitor_run", "monitor_rawreport", "monitor_sample")
MONTHS_AHEAD = 2
# Rows are added, hardly ever changed: by default a partition is vacuumed when a fifth of it is new, and until
# then an index-only scan has to look at the rows as well. Partitions do not inherit the setting.
STORAGE = "autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05"
_EXISTING = "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND relispartition"

MONTHLY_FROM = 2020  # imported histories reach back decades: a year of them is a month of ours


@dataclass(frozen=True, order=True)
class Span:
    """From *start* on, until before *end*; both UTC midnights."""

    start: datetime
    end: datetime

    @property
    def label(self) -> str:
        """Part of a table's name."""
        return f"{self.start:%Y_%m}" if self.start.year >= MONTHLY_FROM else f"{self.start:%Y}"


def range_of(time: datetime) -> Span:
    """The span that *time*, which has a zone, lies in."""
    utc = time.astimezone(UTC)
    if utc.year < MONTHLY_FROM:
        return Span(datetime(utc.year, 1, 1, tzinfo=UTC), datetime(utc.year + 1, 1, 1, tzinfo=UTC))
    start = datetime(utc.year, utc.month, 1, tzinfo=UTC)
    return Span(start, _month_after(start))


def spans_ahead(now: datetime, months: int) -> list[Span]:
    """The span of *now* and those of the next *months*."""
    spans = [range_of(now)]
    while len(spans) <= months:
        spans.append(range_of(spans[-1].end))
    return spans


def _month_after(start: datetime) -> datetime:
    year, month = divmod(start.year * 12 + start.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)


def create_for(times: Iterable[datetime]) -> None:
    """Make the missing partitions for rows of all *times*, in the caller's transaction."""
    _make({range_of(time) for time in times})


def create_ahead(now: datetime) -> None:
    """Make the partitions of *now* and of the next ``MONTHS_AHEAD`` months."""
    with transaction.atomic():
        _make(spans_ahead(now, MONTHS_AHEAD))


def _make(spans: Iterable[Span]) -> None:
    wanted = {f"{table}_{span.label}": (table, span) for span in sorted(spans) for table in _partitioned()}
    if not _missing(wanted):
        return
    lock_until_commit(AdvisoryLock.PARTITIONS)
    for name in _missing(wanted):
        _attach(*wanted[name], name)


def _partitioned() -> list[str]:
    """Return the tables of ``PARTITIONED`` that have native partitions; TimescaleDB takes over one by one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND relkind = 'p'", [list(PARTITIONED)]
        )
        return [name for (name,) in cursor.fetchall()]


def _missing(names: Iterable[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_EXISTING, [list(names)])
        existing = {name for (name,) in cursor.fetchall()}
    return [name for name in names if name not in existing]


def _attach(table: str, span: Span, name: str) -> None:
    """Create a table, then attach it: unlike creating it in place, that blocks no reader and no writer."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL) WITH ({STORAGE})")
        cursor.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM (%s) TO (%s)",
            [span.start, span.end],
        )
