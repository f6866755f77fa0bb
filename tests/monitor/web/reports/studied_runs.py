"""Builders of runs of Gather, Circle and PreCo for the tests of the study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import probes
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest_all
from probes.base import checked_parameters
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report

GIVEN = {
    "gather": {"file_bytes": 10_000, "result_bytes": 10_000},
    "circle": {"file_bytes": 10_000},
    "preco": {},
}
BINDINGS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "gather": {"sources": ["alpha"], "compute": ["beta"], "destination": ["gamma"]},
    "circle": {"ring": ["alpha", "beta"]},
    "preco": {"source": ["alpha"], "compute": ["beta"], "destination": ["gamma"]},
}
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def define_grid(directory: Path, names: Iterable[str] = BINDINGS) -> None:
    """Define three resources, and a series of each probe of *names*."""
    resources = [
        ResourceConfig(name, f"site-of-{name}", str(directory / name)) for name in ("alpha", "beta", "gamma")
    ]
    define(resources, [SeriesDefinition(name, name, BINDINGS[name], GIVEN[name]) for name in names])


def run_of(
    probe: str,
    slot: datetime,
    *,
    series: str = "",
    without: Sequence[str] = (),
    usual: float = 1.0,
    **stages: float,
) -> wire.Report:
    """Return a passed run of *series*, which is that of *probe* where it is empty.

    *stages* take their seconds, and others *usual* seconds.
    """
    code = probes.load(probe)
    timings, started = [], 0.0
    for stage in code.stages:
        if stage.name not in without:
            seconds = stages.get(stage.name, usual)
            timings.append(wire.StageTiming(stage.name, stage.category, seconds, started))
            started += seconds
    return replace(
        circle_report(slot, series=series or probe),
        probe=wire.ProbeIdentity(probe, code.version, "f" * 64),
        parameters=checked_parameters(code, GIVEN[probe]),
        seconds=started,
        stages=timings,
        metrics=[],
        bindings={role: tuple(names) for role, names in BINDINGS[probe].items()},
    )


def failed_run_of(probe: str, slot: datetime, message: str) -> wire.Report:
    """Return a run that failed in its first stage at the resource "beta"."""
    run = run_of(probe, slot)
    failure = wire.Failure(run.stages[0].name, "beta", message, exit_status=1, stderr_tail=message)
    return replace(run, outcome="failed", reason=message, stages=run.stages[:1], failure=failure)


def store(reports: Iterable[wire.Report]) -> None:
    receipts = ingest_all([wire.to_json(report) for report in reports])
    assert [receipt.error for receipt in receipts if not receipt.accepted] == []


def hourly_runs(noon: datetime, compute_seconds: Iterable[float]) -> None:
    """Store a Gather each hour, and ten minutes later a PreCo whose computation takes twice as long."""
    reports = []
    for number, seconds in enumerate(compute_seconds):
        slot = noon + number * HOUR
        reports.append(run_of("gather", slot, compute=seconds))
        reports.append(run_of("preco", slot + 10 * MINUTE, compute=2 * seconds))
    store(reports)
