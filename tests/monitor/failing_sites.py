"""Builders of a grid whose series fail site by site."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Run, Series, Site
from monitor.models.run import State
from reporters import report as wire
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)
FULL = "write failed: No space left on device"
TIMEOUT = "ssh: connect to host x port 22: Connection timed out"
SITES = ["a", "b", "c", "d", "e"]


def grid_of_sites(circle: Series) -> dict[str, Series]:
    """Two series at each of five sites, such as a-1 and a-2 at site a; no series uses two sites."""
    circle.enabled = False
    circle.save()
    every = {}
    for name in SITES:
        resource = Site.objects.create(name=name).resources.create(name=f"host-{name}", scratch="/scratch")
        for number in (1, 2):
            series = Series.objects.create(
                name=f"{name}-{number}",
                probe="login",
                suite=circle.suite,
                reporter=circle.reporter,
                schedule="@hourly",
            )
            series.bindings.create(role="target", position=0, resource=resource)
            every[series.name] = series
    return every


def ran(
    grid: dict[str, Series], names: Iterable[str], outcome: str, slot: datetime, text: str = FULL
) -> None:
    """Let the series *names* run at *slot*: ``x`` failed at its site, ``.`` passed."""
    for name in names:
        failed = outcome == "x"
        Run.objects.create(
            id=wire.run_id(name, slot),
            series=grid[name],
            slot=slot,
            due_at=slot,
            state=State.FAILED if failed else State.PASSED,
            stage="login" if failed else "",
            reason=text if failed else "",
            failed_resource=f"host-{name[0]}" if failed else "",
        )
    classify_runs(slot)


def runs(grid: dict[str, Series], names: Iterable[str], outcomes: str, text: str = FULL) -> None:
    """Let the series run once an hour, the last time at noon."""
    for number, outcome in enumerate(reversed(outcomes)):
        ran(grid, names, outcome, NOON - number * HOUR, text)
