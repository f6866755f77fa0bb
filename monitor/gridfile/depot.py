"""The grid that the depot has, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Exists, OuterRef

from monitor.gridfile.definition import (
    AlertDefinition,
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
from monitor.models import (
    AlertRule,
    Binding,
    MaintenanceWindow,
    Reporter,
    Resource,
    Run,
    Series,
    Site,
    Suite,
    Usage,
)
from monitor.models.alert import WATCHED
from monitor.models.reporter import HOME
from monitor.models.run import SCHEDULE, State

_JOINED = {"viewers", "bindings", "sites", "watches", "notify"}
_REFERENCES = {"site", "suite", "reporter", "leader"}


def read() -> Grid:
    """Everything that a grid file may say, as the depot has it."""
    sites = [SiteDefinition(**_values(SiteDefinition, site)) for site in Site.objects.all()]
    resources = [
        ResourceDefinition(**_values(ResourceDefinition, one))
        for one in Resource.objects.select_related("site")
    ]
    suites = [
        SuiteDefinition(
            **_values(SuiteDefinition, one), viewers=tuple(sorted(group.name for group in one.viewers.all()))
        )
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
        for one in MaintenanceWindow.objects.prefetch_related("sites")
    ]
    alerts = [
        AlertDefinition(**_values(AlertDefinition, one), watches=_watched(one), notify=tuple(one.notify))
        for one in AlertRule.objects.prefetch_related("suites", "sites", "series")
    ]
    return Grid(
        {one.name: one for one in sites},
        {one.name: one for one in resources},
        {one.name: one for one in suites},
        {one.name: one for one in series},
        {one.name: one for one in maintenance},
        {one.name: one for one in alerts},
    )


def outside() -> Outside:
    """What a file may refer to that it does not have itself."""
    reporters = {HOME, *Reporter.objects.values_list("name", flat=True)}
    return Outside(reporters, set(Group.objects.values_list("name", flat=True)))


def history(series: Iterable[str]) -> History:
    """What must not be removed: those of these *series* that have runs, but for slots to come, sites
    and alert rules.

    None of the series gets a new run until the end of the transaction.
    """
    mine = Series.objects.filter(name__in=list(series)).order_by("name")
    list(mine.select_for_update())
    runs = Run.objects.filter(series=OuterRef("pk")).exclude(trigger=SCHEDULE, state=State.EXPECTED)
    sites = Site.objects.filter(Exists(Usage.objects.filter(site=OuterRef("pk"))))
    return History(
        set(mine.filter(Exists(runs)).values_list("name", flat=True)),
        set(sites.values_list("name", flat=True)),
        set(AlertRule.objects.filter(alerts__isnull=False).values_list("name", flat=True)),
    )


def _values(kind: type[Definition], row: models.Model) -> dict[str, Any]:
    """The values of *row* that a definition has, references by name; not what has a table of its own."""
    names = [field.name for field in fields(kind) if field.name not in _JOINED]
    values = {name: getattr(row, name) for name in names}
    named = {name: values[name] and values[name].name for name in _REFERENCES & values.keys()}
    return {**values, **named}


def _watched(rule: AlertRule) -> dict[str, Any]:
    named = {noun: tuple(sorted(one.name for one in getattr(rule, noun).all())) for noun in WATCHED}
    return {
        **({"everything": True} if rule.everything else {}),
        **{noun: names for noun, names in named.items() if names},
    }


def _bindings() -> dict[int, dict[str, tuple[str, ...]]]:
    """Resource names by series and role, in order."""
    found: dict[int, dict[str, tuple[str, ...]]] = {}
    rows = Binding.objects.order_by("series_id", "role", "position")
    for series, role, resource in rows.values_list("series_id", "role", "resource__name"):
        roles = found.setdefault(series, {})
        roles[role] = (*roles.get(role, ()), resource)
    return found
