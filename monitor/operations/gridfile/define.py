"""Define sites, resources and series in the depot from code; idempotent."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import probes
from monitor.models.series import REPORTED_PROBE
from monitor.operations.gridfile import depot, planning, writing
from monitor.operations.gridfile.applying import locked_transaction
from monitor.operations.gridfile.definition import (
    AlertDefinition,
    GridDefinition,
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
    """Create or change these resources, series and alert rules, with their sites and suites.

    All other definitions in the depot stay as they are.

    Raises:
        probes.base.ProbeError: a probe is unknown, or bindings, parameters or an access method of a resource
            are invalid.
        reporters.schedule.InvalidSchedule: a schedule is invalid.
    """
    for resource in resources:
        resolve.check(resource)
    for definition in series:
        _check(definition)
    parts = {
        "sites": resources, "resources": resources, "suites": series, "series": series, "alerts": alerts
    }  # fmt: skip
    with locked_transaction():
        current = depot.read([noun for noun, definitions in parts.items() if definitions])
        grid = _grid(resources, series, alerts, current)
        writing.write(planning.plan(current, grid, prune=False))


def _check(series: SeriesDefinition) -> None:
    if series.probe != REPORTED_PROBE:
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
    current: GridDefinition,
) -> GridDefinition:
    """Return the grid to write; existing sites and suites keep their attributes, resources their storage."""
    storage = {name: resource.storage for name, resource in current.resources.items()}
    return GridDefinition(
        sites={
            resource.site: current.sites.get(resource.site, SiteDefinition(resource.site))
            for resource in resources
        },
        resources={
            resource.name: ResourceDefinition(**asdict(resource), storage=storage.get(resource.name, {}))
            for resource in resources
        },
        suites={
            definition.suite: current.suites.get(definition.suite, SuiteDefinition(definition.suite))
            for definition in series
        },
        series={definition.name: replace(definition, bindings=_tuples(definition)) for definition in series},
        alerts={rule.name: rule for rule in alerts},
    )


def _tuples(series: SeriesDefinition) -> dict[str, tuple[str, ...]]:
    return {role: tuple(names) for role, names in series.bindings.items()}
