"""Define a grid in the depot: sites, resources, series. Doing it twice changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import transaction

import probes
from monitor.models import Binding, Reporter, Resource, Series, Site, Suite
from monitor.models.reporter import HOME
from monitor.services import expand
from probes.base import checked_plan
from reporters import reach

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reporters import config


@dataclass(frozen=True)
class SeriesDefinition:
    """A probe with parameters, bound to resources (role -> names, in order), on a schedule."""

    name: str
    probe: str
    bindings: Mapping[str, Sequence[str]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schedule: str = ""
    enabled: bool = True
    limit_seconds: float = 1800.0
    suite: str = "main"


@transaction.atomic
def define(resources: Sequence[config.Resource], series: Sequence[SeriesDefinition]) -> None:
    """Make or change these resources and series; others stay as they are.

    Raises:
        probes.base.ProbeError: an unknown probe, bindings or parameters that it does not accept, or a
            resource that cannot be reached as it says.
        reporters.schedule.InvalidSchedule: a schedule that cannot be read.
    """
    for resource in resources:
        _define_resource(resource)
    home, _ = Reporter.objects.get_or_create(name=HOME)
    for definition in series:
        _define_series(definition, home)


def _define_resource(resource: config.Resource) -> None:
    reach.check(resource)
    site, _ = Site.objects.get_or_create(name=resource.site)
    Resource.objects.update_or_create(
        name=resource.name,
        defaults={
            "site": site,
            "scratch": resource.scratch,
            "shell": dict(resource.shell),
            "transfer": dict(resource.transfer),
            "batch": dict(resource.batch),
            "address": resource.address,
        },
    )


def _define_series(definition: SeriesDefinition, reporter: Reporter) -> None:
    checked_plan(probes.load(definition.probe), definition.bindings, definition.parameters)
    if definition.schedule:
        expand.check(definition.schedule, definition.name)
    suite, _ = Suite.objects.get_or_create(name=definition.suite)
    series, _ = Series.objects.update_or_create(
        name=definition.name,
        defaults={
            "suite": suite,
            "probe": definition.probe,
            "parameters": dict(definition.parameters),
            "reporter": reporter,
            "schedule": definition.schedule,
            "enabled": definition.enabled,
            "limit_seconds": definition.limit_seconds,
        },
    )
    _bind(series, definition.bindings)


def _bind(series: Series, bindings: Mapping[str, Sequence[str]]) -> None:
    wanted = [(role, i, name) for role, names in bindings.items() for i, name in enumerate(names)]
    existing = series.bindings.values_list("role", "position", "resource__name")
    if sorted(existing) == sorted(wanted):
        return
    series.bindings.all().delete()
    by_name = {
        resource.name: resource for resource in Resource.objects.filter(name__in={w[2] for w in wanted})
    }
    Binding.objects.bulk_create(
        Binding(series=series, role=role, position=position, resource=by_name[name])
        for role, position, name in wanted
    )
