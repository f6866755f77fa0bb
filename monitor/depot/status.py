"""What the depot is: its engine, how much room it takes, and whether its rollups are up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from monitor import units
from monitor.db.partitions import PARTITIONED
from monitor.db.table_sizes import table_size
from monitor.db.timescale_extension import Extension, extension
from monitor.depot.engines import engine
from monitor.depot.engines.continuous_aggregates import NAMES as ROLLUPS
from monitor.depot.engines.engine import Engine, Part
from monitor.depot.engines.timescale import Apache, Timescale

COMMAND = "manage.py depot migrate-to-timescale"
_STALE = "SELECT count(*), min(hour) FROM (SELECT DISTINCT series_id, hour FROM monitor_dirtyhour) AS hours"


@dataclass(frozen=True)
class Table:
    """*parts* are empty where it is not kept in parts, or they are nobody's business."""

    name: str
    bytes: int
    rows: int
    parts: Sequence[Part]

    @property
    def bytes_per_row(self) -> float | None:
        return self.bytes / self.rows if self.rows else None


@dataclass(frozen=True)
class Status:
    """*stale_hours* counts hours of series that changed since they were rolled up."""

    engine: str
    features: str
    server: str
    extension: Extension
    tables: Sequence[Table]
    stale_hours: int
    oldest_stale: datetime | None
    advice: str

    @property
    def bytes_per_sample(self) -> float | None:
        """With what is rolled up from it."""
        samples = next(table for table in self.tables if table.name == "monitor_sample")
        with_rollups = [table.bytes for table in self.tables if table.name in {samples.name, *ROLLUPS}]
        return sum(with_rollups) / samples.rows if samples.rows else None

    def document(self) -> dict[str, Any]:
        """For programs; times in ISO 8601."""
        tables = [{**asdict(table), "bytes_per_row": table.bytes_per_row} for table in self.tables]
        for table in tables:
            table["parts"] = [_part(part) for part in table["parts"]]
        oldest = self.oldest_stale.isoformat() if self.oldest_stale else None
        derived = {"tables": tables, "oldest_stale": oldest, "bytes_per_sample": self.bytes_per_sample}
        return {**asdict(self), **derived}


def status() -> Status:
    kind, has = engine(), extension()
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (server,) = cursor.fetchone()
        cursor.execute(_STALE)
        stale_hours, oldest = cursor.fetchone()
    tables = [_table(kind, name) for name in (*PARTITIONED, *ROLLUPS)]
    return Status(kind.name, _features(kind), server, has, tables, stale_hours, oldest, _advice(kind, has))


def _table(kind: Engine, name: str) -> Table:
    parts = kind.parts(name) if name in PARTITIONED else []
    taken = table_size(name)
    return Table(name, taken.bytes, taken.rows, parts)


def _features(kind: Engine) -> str:
    if isinstance(kind, Timescale):
        return "hypertables, compression, continuous aggregates (Timescale License)"
    if isinstance(kind, Apache):
        return "hypertables; rollups in tables (Apache License 2.0)"
    return "native partitions, rollups in tables"


def _advice(kind: Engine, has: Extension) -> str:
    """What could be had and is not; empty where that is nothing."""
    if isinstance(kind, Timescale) or not has.is_usable:
        return ""
    if isinstance(kind, Apache):
        is_more = has.licence == "timescale"
        return "Its licence allows compression and continuous aggregates as well." if is_more else ""
    return f"TimescaleDB {has.installed or has.available} is available, but not used."


def text(status: Status, *, with_parts: bool = False) -> Iterator[str]:
    """Lines for people, of 80 columns at most."""
    version = f" {status.extension.installed}" if status.engine != "PostgreSQL" else ""
    on = f" on PostgreSQL {status.server}" if version else f" {status.server}"
    yield f"{status.engine}{version}{on}"
    yield f"  {status.features}"
    yield ""
    yield f"{'':<26}{'parts':>6}{'compressed':>12}{'rows':>13}{'size':>11}{'a row':>10}"
    for table in status.tables:
        yield _line(table)
        if with_parts:
            yield from _part_lines(table.parts)
    yield ""
    if status.bytes_per_sample is not None:
        yield f"A sample with its rollups takes {status.bytes_per_sample:.0f} bytes."
    yield _freshness(status)
    if status.advice:
        yield f"{status.advice} To use it:"
        yield f"  {COMMAND}"


def _line(table: Table) -> str:
    compressed = sum(part.is_compressed for part in table.parts)
    each = f"{table.bytes_per_row:.0f} B" if table.bytes_per_row is not None else "-"
    size, parts = units.humanised(table.bytes, "bytes"), len(table.parts) or "-"
    return f"{table.name:<26}{parts:>6}{compressed or '-':>12}{table.rows or '-':>13}{size:>11}{each:>10}"


def _part_lines(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        how = "compressed" if part.is_compressed else ""
        span = f"{part.start:%Y-%m-%d} to {part.end:%Y-%m-%d}"
        yield f"  {span:<30}{how:>12}{'':>13}{units.humanised(part.bytes, 'bytes'):>11}"


def _freshness(status: Status) -> str:
    if status.oldest_stale is None:
        return "Rollups are up to date."
    oldest = status.oldest_stale.astimezone(UTC)
    since = units.age((timezone.now() - oldest).total_seconds())
    return (
        f"Rollups wait for {status.stale_hours:,} hours, the oldest of {oldest:%Y-%m-%d %H:%M} UTC ({since})."
    )


def _part(part: Any) -> dict[str, Any]:
    return {**part, "start": part["start"].isoformat(), "end": part["end"].isoformat()}
