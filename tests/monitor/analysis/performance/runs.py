"""Builders of passed runs for the tests of performance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from monitor.models import Series
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def ingested(reports: Iterable[wire.Report]) -> None:
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))


def ring_runs(
    first: datetime,
    ring_seconds: Iterable[float],
    *,
    series: str = "circle",
    every: timedelta = HOUR,
    **changes: Any,
) -> None:
    """Ingest passed Circles from *first* on; all stages but the ring take a second."""
    ingested(
        circle_report(first + number * every, series=series, ring_seconds=seconds, **changes)
        for number, seconds in enumerate(ring_seconds)
    )


def another_series(name: str, like: Series) -> Series:
    """Create a series with the probe and the resources of *like*."""
    series = Series.objects.create(
        name=name,
        probe=like.probe,
        suite=like.suite,
        reporter=like.reporter,
        parameters=like.parameters,
        schedule="@hourly",
    )
    for binding in like.bindings.all():
        series.bindings.create(role=binding.role, position=binding.position, resource=binding.resource)
    return series


def with_kernel(report: wire.Report, kernel: str) -> wire.Report:
    return replace(report, environment=replace(report.environment, kernel=kernel))
