"""Storage areas with runs of their probes, for tests: a RAID of disks, and flash."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

import probes
from monitor.models import Resource, Series
from reporters import report as wire
from tests.monitor.web.pages import builders

DISKS = {"sequential_read": 120e6, "sequential_write": 90e6, "random_read": 900.0, "random_write": 400.0}
FLASH = {"sequential_read": 250e6, "sequential_write": 200e6, "random_read": 40e3, "random_write": 11e3}
STORAGE = {
    "medium": "flash",
    "capacity_gb": 64.0,
    "price": 500.0,
    "power_watts": 2.5,
    "endurance_cycles": 100_000.0,
    "parts": {"count": 2, "read_operations_per_second": 39_756.0},
}
_RATES = {"sequential": "bytes_per_second", "random": "operations_per_second"}


def storage_series(name: str, probe: str, resource: Resource, **fields: object) -> Series:
    return builders.series(name, {"target": [resource]}, probe=probe, schedule="", **fields)


def deliver(series: Series, slot: datetime, metrics: Mapping[str, float]) -> None:
    """Ingest the report of a passed run of *series* with these metrics; units are ends of their names."""
    probe = probes.load(series.probe)
    stages = tuple(
        wire.StageTiming(stage.name, stage.category, 1.0, float(place))
        for place, stage in enumerate(probe.stages)
    )
    values = tuple(
        wire.MetricValue(name, value, name.rpartition(".")[2]) for name, value in sorted(metrics.items())
    )
    sent = builders.report(series, slot)
    builders.delivered(replace(sent, stages=stages, seconds=float(len(stages)), metrics=values))


def disk_history(
    series: Series, rates: Mapping[str, float], until: datetime, *, runs: int = 12, last: float = 1.0
) -> None:
    """Deliver a run of Disk each day until *until*; the newest run has *last* times the usual rates."""
    numbers = random.Random(series.name)
    for day in range(runs):
        factor = (last if day == runs - 1 else 1.0) * numbers.uniform(0.98, 1.02)
        metrics = {f"{use}.{_RATES[use.partition('_')[0]]}": rate * factor for use, rate in rates.items()}
        deliver(series, until - timedelta(days=runs - 1 - day), {**metrics, "scratch.full": 0.3 + 0.04 * day})


def sweep_passes(series: Series, began: datetime, *, passes: int = 4, remaining: int = 0) -> None:
    """Deliver passes of a sweep in which eight tasks are twice as fast as one, and writes slower than reads.

    The first pass is a fifth slower. The last run leaves *remaining* combinations of its pass.
    """
    numbers = random.Random(series.name)
    for number in range(1, passes + 1):
        metrics = {
            "sweep.pass": float(number),
            "sweep.began": began.timestamp(),
            "sweep.remaining": float(remaining if number == passes else 0),
        }
        for size, pattern, direction, tasks in product(
            ("4096", "1048576"), ("sequential", "random"), ("read", "write"), ("1", "8")
        ):
            rate = 100e6 * (2.0 if tasks == "8" else 1.0) * (0.7 if direction == "write" else 1.0)
            rate *= (0.05 if size == "4096" else 1.0) * (0.3 if pattern == "random" else 1.0)
            rate *= (0.8 if number == 1 else 1.0) * numbers.uniform(0.98, 1.02)
            levels = f"request_bytes={size},pattern={pattern},queue_depth=1,direction={direction}"
            metrics[f"sweep.{levels},cache=direct,file=own,tasks={tasks}.bytes_per_second"] = rate
        deliver(series, began + timedelta(hours=number), metrics)


def stream_passes(
    series: Series, began: datetime, *, passes: int = 5, unlimited_seconds: float = 250.0
) -> None:
    """Deliver passes of streams: one reader takes 200 s, sixteen with one writer 250 s."""
    numbers = random.Random(series.name)
    for number in range(1, passes + 1):
        metrics = {
            "streams.pass": float(number),
            "streams.began": began.timestamp(),
            "streams.remaining": 0.0,
        }
        for readers, writers in product((1, 16), (1, 16)):
            cell = f"streams.readers={readers},writers={writers}"
            seconds = {1: 200.0, 16: 250.0}[readers] if 1 in (readers, writers) else unlimited_seconds
            metrics[f"{cell}.seconds"] = seconds * numbers.uniform(0.99, 1.01)
            metrics[f"{cell}.barrier.seconds"] = 10.0
            metrics[f"{cell}.spread.seconds"] = 2.0
        deliver(series, began + timedelta(hours=number), metrics)
