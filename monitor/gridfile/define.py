"""Define a grid in the depot: sites, resources, series. Doing it twice changes nothing."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import probes
from monitor.gridfile import depot, planning, writing
from monitor.gridfile.applying import changing
from monitor.gridfile.definition import (
    AlertDefinition,
    Grid,
    ResourceDefinition,
    SeriesDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from probes.base import checked_plan
from reporters import resolve
from reporters.schedule import parse_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reporters import config

__all__ = ["AlertDefinition", "SeriesDefinition", "define"]


def define(
    resources: Sequence[config.ResourceConfig],
    series: Sequence[SeriesDefinition],
    alerts: Sequence[AlertDefinition] = (),
) -> None:
    """Make or change these resources, series and alert rules, with their sites and suites. Others stay as
    they are.

    Raises:
        probes.base.ProbeError: an unknown probe, bindings or parameters that it does not accept, or a
            resource that cannot be reached as it says.
        reporters.schedule.InvalidSchedule: a schedule that cannot be read.
    """
    for resource in resources:
        resolve.check(resource)
    for definition in series:
        _check(definition)
    with changing():
        have = depot.read()
        writing.write(planning.plan(have, _grid(resources, series, alerts, have), prune=False))


def _check(series: SeriesDefinition) -> None:
    checked_plan(probes.load(series.probe), series.bindings, series.parameters)
    if series.schedule:
        parse_schedule(
            series.schedule,
            series.name,
            zone=series.timezone,
            starts_at=series.starts_at,
            ends_at=series.ends_at,
        )


def _grid(
    resources: Sequence[config.ResourceConfig],
    series: Sequence[SeriesDefinition],
    alerts: Sequence[AlertDefinition],
    have: Grid,
) -> Grid:
    """What is to be; sites and suites that are there already keep what they are."""
    return Grid(
        sites={one.site: have.sites.get(one.site, SiteDefinition(one.site)) for one in resources},
        resources={one.name: ResourceDefinition(**asdict(one)) for one in resources},
        suites={one.suite: have.suites.get(one.suite, SuiteDefinition(one.suite)) for one in series},
        series={one.name: replace(one, bindings=_in_order(one)) for one in series},
        alerts={one.name: one for one in alerts},
    )


def _in_order(series: SeriesDefinition) -> dict[str, tuple[str, ...]]:
    return {role: tuple(names) for role, names in series.bindings.items()}
