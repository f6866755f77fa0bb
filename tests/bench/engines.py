"""Measure bytes per sample, and the migration to TimescaleDB where the server has it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core.management import call_command
from django.db import connection
from psycopg import sql

from monitor.core.db import partitions
from monitor.core.db.table_sizes import table_size
from monitor.core.db.timescale_extension import extension
from monitor.depot import migrate_to_timescale
from monitor.depot.engines import engine
from monitor.depot.engines.continuous_aggregates import NAMES as ROLLUPS
from monitor.depot.rollups import worker
from monitor.models import Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.bench.base import Result, seconds
from tests.databases import in_postgres, using_settings
from tests.monitor.depot.databases import HOW_TO_GET_IT
from tests.monitor.depot.sample_model import metrics_of

NAME = "gridcast_engines"
METRICS, HOURS = 125, 8_000  # a million samples, nearly a year
START = datetime(2024, 1, 1, tzinfo=UTC)

# Runtimes in microseconds around the mean of each metric; one in twenty failed.
_FILL = """
INSERT INTO monitor_sample
SELECT metric_id, slot, slot + interval '40 seconds' * random(),
    round((10 + metric_id %% 50 * exp(random_normal(0, 0.2)))::numeric, 6)::float8, random() > 0.05
FROM generate_series(%s, %s, interval '1 hour') AS slot CROSS JOIN unnest(%s::bigint[]) AS metric_id
"""


@dataclass(frozen=True)
class Sizes:
    """Bytes per sample."""

    samples: float
    hours: float
    days: float

    @property
    def all(self) -> float:
        return self.samples + self.hours + self.days


def measure() -> list[Result]:
    with _empty_database():
        count = _fill()
        rolled_seconds = seconds(_rebuild)
        plain = _sizes(count)
        figures = {
            **_named("PostgreSQL", plain),
            "PostgreSQL, rolled up, samples/s": count / rolled_seconds,
        }
        results = [
            Result("disk: rollups / all, PostgreSQL", 1 - plain.samples / plain.all, 0.5, "lower", figures)
        ]
        if extension().is_usable:
            results.append(_timescale(count, plain))
        else:
            print(f"disk, TimescaleDB: skipped: {HOW_TO_GET_IT}")
        return results


def _timescale(count: int, plain: Sizes) -> Result:
    converted_seconds = seconds(lambda: migrate_to_timescale.migrate(lambda _: None))
    packed = _sizes(count)
    figures = {
        **_named(engine().name, packed),
        "went over, seconds per million samples": converted_seconds / count * 1e6,
    }
    return Result("disk: TimescaleDB / PostgreSQL", packed.all / plain.all, 0.4, "lower", figures)


@contextlib.contextmanager
def _empty_database() -> Iterator[None]:
    name = sql.Identifier(NAME)
    in_postgres("CREATE DATABASE {}", name)
    try:
        with using_settings({"NAME": NAME}):
            call_command("migrate", verbosity=0)
            yield
    finally:
        in_postgres("DROP DATABASE {} WITH (FORCE)", name)


def _fill() -> int:
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition("circle", "circle", {"ring": ["here", "there"]})])
    keys = [metric.pk for metric in metrics_of(Series.objects.get(), METRICS)]
    slots = [START + timedelta(hours=hour) for hour in range(HOURS)]
    partitions.create_for(slots)
    with connection.cursor() as cursor:
        cursor.execute(_FILL, [slots[0], slots[-1], keys])
        cursor.execute("VACUUM ANALYZE monitor_sample")
    return METRICS * HOURS


def _rebuild() -> None:
    for _ in worker.rebuild():
        pass


def _sizes(count: int) -> Sizes:
    return Sizes(*(table_size(table).bytes / count for table in ("monitor_sample", *ROLLUPS)))


def _named(kind: str, sizes: Sizes) -> dict[str, float]:
    """Return the figures of *sizes* by name."""
    return {
        f"{kind}, bytes per sample": sizes.samples,
        f"{kind}, its hours, bytes": sizes.hours,
        f"{kind}, its days, bytes": sizes.days,
        f"{kind}, all of it, bytes": sizes.all,
    }
