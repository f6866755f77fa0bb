"""Thousands of slots that are due at once, expanded from schedules by the first tick."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from monitor.models import Reporter, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig

SITES = 7
CAPACITY = 40
MINUTES = 10  # the period of all slots
FOLLOWING = 4  # every fourth series runs after the previous one


def expect(runs: int, now: datetime, directory: Path) -> None:
    """Define *runs* series that do nothing, each with one slot within the last ``MINUTES``.

    Runs of one series never overlap, so several of its slots could not be run at once.
    """
    resources = [ResourceConfig(f"host-{i}", f"site-{i}", str(directory)) for i in range(SITES)]
    latest = now.replace(second=0, microsecond=0)
    define(resources, [_series(number, latest) for number in range(runs)])
    Series.objects.update(created_at=latest - timedelta(minutes=MINUTES + 1))
    Reporter.objects.update(capacity=CAPACITY)


def _series(number: int, latest: datetime) -> SeriesDefinition:
    name, target = f"noop-{number}", {"target": [f"host-{number % SITES}"]}
    if number % FOLLOWING == FOLLOWING - 1:
        return SeriesDefinition(name, "noop", target, leader=f"noop-{number - 1}", follows="after")
    slot = latest - timedelta(minutes=number % MINUTES)
    return SeriesDefinition(name, "noop", target, schedule="* * * * *", starts_at=slot, ends_at=slot)
