"""Report the state of the depot: its engine, the sizes of its tables, and its dirty hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from monitor.core import units
from monitor.core.db.partitions import PARTITIONED
from monitor.core.db.table_sizes import table_size
from monitor.core.db.timescale_extension import Extension, extension
from monitor.depot.engines import engine
from monitor.depot.engines.continuous_aggregates import NAMES as ROLLUPS
from monitor.depot.engines.engine import Engine, Partition
from monitor.depot.engines.timescale import ApacheTimescaleEngine, TimescaleEngine

COMMAND = "manage.py depot migrate-to-timescale"
_DIRTY_HOURS = (
    "SELECT count(*), min(hour) FROM (SELECT DISTINCT series_id, hour FROM monitor_dirtyhour) AS hours"
)


@dataclass(frozen=True)
class TableStatus:
    """The size of one table in bytes and rows; *parts* are its partitions, if it has any."""

    name: str
    bytes: int
    rows: int
    parts: Sequence[Partition]

    @property
    def bytes_per_row(self) -> float | None:
        return self.bytes / self.rows if self.rows else None


@dataclass(frozen=True)
class DepotStatus:
    """The state of the depot.

    Attributes:
        stale_hours: number of dirty hours, summed over the series.
        oldest_stale: the oldest dirty hour; None if no hour is dirty.
        advice: a sentence about unused features of the server; empty if all features are used.
    """

    engine: str
    features: str
    server: str
    extension: Extension
    tables: Sequence[TableStatus]
    stale_hours: int
    oldest_stale: datetime | None
    advice: str

    @property
    def bytes_per_sample(self) -> float | None:
        """Return the bytes of all samples and rollups, divided by the number of samples."""
        samples = next(table for table in self.tables if table.name == "monitor_sample")
        with_rollups = [table.bytes for table in self.tables if table.name in {samples.name, *ROLLUPS}]
        return sum(with_rollups) / samples.rows if samples.rows else None

    def document(self) -> dict[str, Any]:
        """Return the content of ``depot status --json``, with times in ISO 8601."""
        tables = [{**asdict(table), "bytes_per_row": table.bytes_per_row} for table in self.tables]
        for table in tables:
            table["parts"] = [_part_document(part) for part in table["parts"]]
        oldest = self.oldest_stale.isoformat() if self.oldest_stale else None
        derived = {"tables": tables, "oldest_stale": oldest, "bytes_per_sample": self.bytes_per_sample}
        return {**asdict(self), **derived}


def status() -> DepotStatus:
    current_engine, timescaledb = engine(), extension()
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (server,) = cursor.fetchone()
        cursor.execute(_DIRTY_HOURS)
        stale_hours, oldest = cursor.fetchone()
    tables = []
    for name in (*PARTITIONED, *ROLLUPS):
        size = table_size(name)
        partitions = current_engine.partitions(name) if name in PARTITIONED else []
        tables.append(TableStatus(name, size.bytes, size.rows, partitions))
    return DepotStatus(
        engine=current_engine.name,
        features=_features(current_engine),
        server=server,
        extension=timescaledb,
        tables=tables,
        stale_hours=stale_hours,
        oldest_stale=oldest,
        advice=_advice(current_engine, timescaledb),
    )


def _features(current_engine: Engine) -> str:
    if isinstance(current_engine, TimescaleEngine):
        return "hypertables, compression, continuous aggregates (Timescale License)"
    if isinstance(current_engine, ApacheTimescaleEngine):
        return "hypertables; rollups in tables (Apache License 2.0)"
    return "native partitions, rollups in tables"


def _advice(current_engine: Engine, timescaledb: Extension) -> str:
    """Return a sentence about features that the server offers and the depot does not use, or ""."""
    if isinstance(current_engine, TimescaleEngine) or not timescaledb.is_usable:
        return ""
    if isinstance(current_engine, ApacheTimescaleEngine):
        is_upgradable = timescaledb.licence == "timescale"
        return "Its licence allows compression and continuous aggregates as well." if is_upgradable else ""
    return f"TimescaleDB {timescaledb.installed or timescaledb.available} is available, but not used."


def text(status: DepotStatus, *, with_parts: bool = False) -> Iterator[str]:
    """Yield the lines of ``depot status``, at most 80 columns wide."""
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
        yield f"{status.bytes_per_sample:.0f} bytes per sample, rollups included."
    yield _freshness(status)
    if status.advice:
        yield f"{status.advice} To use it:"
        yield f"  {COMMAND}"


def _line(table: TableStatus) -> str:
    compressed = sum(part.is_compressed for part in table.parts)
    each = f"{table.bytes_per_row:.0f} B" if table.bytes_per_row is not None else "-"
    size, parts = units.humanised(table.bytes, "bytes"), len(table.parts) or "-"
    return f"{table.name:<26}{parts:>6}{compressed or '-':>12}{table.rows or '-':>13}{size:>11}{each:>10}"


def _part_lines(parts: Iterable[Partition]) -> Iterator[str]:
    for part in parts:
        how = "compressed" if part.is_compressed else ""
        span = f"{part.start:%Y-%m-%d} to {part.end:%Y-%m-%d}"
        yield f"  {span:<30}{how:>12}{'':>13}{units.humanised(part.bytes, 'bytes'):>11}"


def _freshness(status: DepotStatus) -> str:
    if status.oldest_stale is None:
        return "Rollups are up to date."
    oldest = status.oldest_stale.astimezone(UTC)
    since = units.age((timezone.now() - oldest).total_seconds())
    return f"{status.stale_hours:,} dirty hours, the oldest of {oldest:%Y-%m-%d %H:%M} UTC ({since})."


def _part_document(part: Any) -> dict[str, Any]:
    return {**part, "start": part["start"].isoformat(), "end": part["end"].isoformat()}
