"""Builders of grids, reports and runs for tests."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import probes
from monitor.models import Run, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from probes.base import checked_parameters
from reporters import report as wire
from reporters.config import ResourceConfig
from reporters.usage import ResourceUsage

CIRCLE = probes.load("circle")
STAGES = {"init": "setup", "transfer_ring": "transfer", "compare": "compute", "cleanup": "cleanup"}


def circle_report(
    slot: datetime, *, series: str = "circle", ring_seconds: float = 4.0, **changes: Any
) -> wire.Report:
    """Return the report of a passed Circle: 1 s for each stage, but *ring_seconds* for the ring."""
    seconds = {"init": 1.0, "transfer_ring": ring_seconds, "compare": 1.0, "cleanup": 1.0}
    started, stages = 0.0, []
    for name, category in STAGES.items():
        stages.append(wire.StageTiming(name, category, seconds[name], started))
        started += seconds[name]
    passed = wire.Report(
        run=wire.run_id(series, slot),
        series=series,
        slot=slot,
        reporter="home",
        probe=wire.ProbeIdentity("circle", CIRCLE.version, "0" * 64),
        parameters=checked_parameters(CIRCLE, {"file_bytes": 1000}),
        started_at=slot,
        seconds=started,
        outcome="passed",
        reason="",
        stages=stages,
        metrics=[wire.MetricValue("ring.bytes_per_second", 2000 / ring_seconds, "bytes_per_second")],
        failure=None,
        log=[wire.LogLine("info", 0.0, "began")],
        environment=wire.Environment("reporter.example.org", "Linux 6.1", "3.11"),
        clock=wire.Clock(slot + timedelta(seconds=started), synchronised=True),
        bindings={"ring": ("here", "there")},
        usage={},
    )
    return replace(passed, **changes)


def gather_report(slot: datetime, *, series: str, numbers: random.Random) -> wire.Report:
    """Return the report of a passed Gather of realistic size, with 12 samples drawn from *numbers*."""
    gather = probes.load("gather")
    started, stages, log = 0.0, [], []
    for stage in gather.stages:
        seconds = numbers.expovariate(0.1)
        stages.append(wire.StageTiming(stage.name, stage.category, seconds, started))
        log.append(wire.LogLine("info", started, f"{stage.name} begins"))
        if stage.category == "transfer":
            source, target = ("alpha", "beta") if stage.name == "transfer_data" else ("beta", "gamma")
            places = [
                f"{name}:/scratch/probes/gridcast/{series}/{slot:%H%M}/{name}.dat"
                for name in (source, target)
            ]
            text = f"copied {places[0]} to {places[1]}: 10000 bytes in {seconds:.3f} s, 1 streams"
            log.append(wire.LogLine("info", started + seconds, text))
        started += seconds
    return replace(
        circle_report(slot, series=series),
        probe=wire.ProbeIdentity("gather", gather.version, "f" * 64),
        parameters=checked_parameters(gather, {"file_bytes": 10_000, "result_bytes": 10_000}),
        seconds=started,
        stages=stages,
        metrics=[
            wire.MetricValue("transfer.bytes_per_second", numbers.expovariate(1e-8), "bytes_per_second")
        ],
        log=log,
        bindings={"sources": ("alpha",), "compute": ("beta",), "destination": ("gamma",)},
        usage={
            "alpha": ResourceUsage(bytes_sent=numbers.randrange(10**9)),
            "beta": ResourceUsage(
                bytes_received=numbers.randrange(10**9), cpu_seconds=numbers.expovariate(0.1)
            ),
            "gamma": ResourceUsage(bytes_received=numbers.randrange(10**9)),
        },
    )


def failed_circle_report(slot: datetime, *, message: str = "No space left on device") -> wire.Report:
    """Return the report of a Circle whose ring failed at the resource "there"."""
    passed = circle_report(slot)
    stderr_tail = f"scp: {message}\n"
    return replace(
        passed,
        outcome="failed",
        reason=f"transfer_ring at there failed: {message}",
        stages=passed.stages[:2],
        metrics=[],
        failure=wire.Failure("transfer_ring", "there", message, exit_status=1, stderr_tail=stderr_tail),
    )


def noops(count: int, directory: Path) -> list[Series]:
    """Create *count* series that do nothing, ``noop-0`` on, without a schedule, each at a site of its own."""
    numbers = range(count)
    resources = [ResourceConfig(f"host-{number}", f"site-{number}", str(directory)) for number in numbers]
    define(
        resources,
        [SeriesDefinition(f"noop-{number}", "noop", {"target": [f"host-{number}"]}) for number in numbers],
    )
    by_name = Series.objects.in_bulk([f"noop-{number}" for number in numbers], field_name="name")
    return [by_name[f"noop-{number}"] for number in numbers]


def asked_for(series: Series, due_at: datetime, *, times: int = 1, **changes: Any) -> list[Run]:
    """Create requested runs of *series*, due at *due_at*, with slots a microsecond apart."""
    slots = [due_at + number * timedelta(microseconds=1) for number in range(times)]
    fields = {"series": series, "due_at": due_at, "trigger": "asked for by ada", **changes}
    return Run.objects.bulk_create(
        Run(id=wire.run_id(series.name, slot), slot=slot, **fields) for slot in slots
    )
