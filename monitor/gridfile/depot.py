"""The grid that the depot has, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Exists, OuterRef

from monitor.gridfile.definition import (
    Definition,
    Grid,
    MaintenanceDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.gridfile.loading import Outside
from monitor.gridfile.planning import History
from monitor.models import Binding, Blackout, Reporter, Resource, Run, Series, Site, Suite, Usage
from monitor.models.reporter import HOME
from monitor.models.run import SCHEDULE, State

_REFERENCES = {"site", "suite", "reporter", "leader"}


def read() -> Grid:
    """Everything that a grid file may say, as the depot has it."""
    sites = [SiteDefinition(**_values(SiteDefinition, site)) for site in Site.objects.all()]
    resources = [
        ResourceDefinition(**_values(ResourceDefinition, one))
        for one in Resource.objects.select_related("site")
    ]
    suites = [
        SuiteDefinition(one.name, one.title, tuple(sorted(group.name for group in one.viewers.all())))
        for one in Suite.objects.prefetch_related("viewers")
    ]
    bindings = _bindings()
    series = [
        SeriesDefinition(**_values(SeriesDefinition, one), bindings=bindings.get(one.pk, {}))
        for one in Series.objects.select_related("suite", "reporter", "leader")
    ]
    maintenance = [
        MaintenanceDefinition(
            **_values(MaintenanceDefinition, one), sites=tuple(sorted(site.name for site in one.sites.all()))
        )
        for one in Blackout.objects.prefetch_related("sites")
    ]
    return Grid(
        {one.name: one for one in sites},
        {one.name: one for one in resources},
        {one.name: one for one in suites},
        {one.name: one for one in series},
        {one.name: one for one in maintenance},
    )


def outside() -> Outside:
    """What a file may refer to that it does not have itself."""
    reporters = {HOME, *Reporter.objects.values_list("name", flat=True)}
    return Outside(reporters, set(Group.objects.values_list("name", flat=True)))


def history(series: Iterable[str]) -> History:
    """What must not be removed: those of these *series* that have runs, but for slots to come, and sites.

    None of the series gets a new run until the end of the transaction.
    """
    mine = Series.objects.filter(name__in=list(series)).order_by("name")
    list(mine.select_for_update())
    runs = Run.objects.filter(series=OuterRef("pk")).exclude(trigger=SCHEDULE, state=State.EXPECTED)
    sites = Site.objects.filter(Exists(Usage.objects.filter(site=OuterRef("pk"))))
    return History(
        set(mine.filter(Exists(runs)).values_list("name", flat=True)),
        set(sites.values_list("name", flat=True)),
    )


def _values(kind: type[Definition], row: models.Model) -> dict[str, Any]:
    """The values of *row* that a definition has, references by name; not its bindings, nor its sites."""
    names = [field.name for field in fields(kind) if field.name not in {"bindings", "sites"}]
    values = {name: getattr(row, name) for name in names}
    named = {name: values[name] and values[name].name for name in _REFERENCES & values.keys()}
    return {**values, **named}


def _bindings() -> dict[int, dict[str, tuple[str, ...]]]:
    """Resource names by series and role, in order."""
    found: dict[int, dict[str, tuple[str, ...]]] = {}
    rows = Binding.objects.order_by("series_id", "role", "position")
    for series, role, resource in rows.values_list("series_id", "role", "resource__name"):
        roles = found.setdefault(series, {})
        roles[role] = (*roles.get(role, ()), resource)
    return found
