"""Read the grid of the depot as plain values."""

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
    GridDefinition,
    MaintenanceDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.gridfile.loading import DepotNames
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


def read() -> GridDefinition:
    """Return all parts of the depot that a grid file can define."""
    bindings = _bindings()
    resources = Resource.objects.select_related("site")
    suites = Suite.objects.prefetch_related("viewers")
    series = Series.objects.select_related("suite", "reporter", "leader")
    windows = MaintenanceWindow.objects.prefetch_related("sites")
    rules = AlertRule.objects.prefetch_related("suites", "sites", "series")
    return GridDefinition(
        {row.name: SiteDefinition(**_attributes(SiteDefinition, row)) for row in Site.objects.all()},
        {row.name: ResourceDefinition(**_attributes(ResourceDefinition, row)) for row in resources},
        {
            row.name: SuiteDefinition(
                **_attributes(SuiteDefinition, row), viewers=_sorted_names(row.viewers.all())
            )
            for row in suites
        },
        {
            row.name: SeriesDefinition(
                **_attributes(SeriesDefinition, row), bindings=bindings.get(row.pk, {})
            )
            for row in series
        },
        {
            row.name: MaintenanceDefinition(
                **_attributes(MaintenanceDefinition, row), sites=_sorted_names(row.sites.all())
            )
            for row in windows
        },
        {
            row.name: AlertDefinition(
                **_attributes(AlertDefinition, row), watches=_watches(row), notify=tuple(row.notify)
            )
            for row in rules
        },
    )


def names() -> DepotNames:
    """Return the names that a file may refer to without defining them."""
    reporters = {HOME, *Reporter.objects.values_list("name", flat=True)}
    return DepotNames(reporters, set(Group.objects.values_list("name", flat=True)))


def history(series: Iterable[str]) -> History:
    """Return the names that must not be removed: of *series* with runs, sites with usage, rules with alerts.

    Expected runs of future slots do not count. The series are locked: they get no new run until the end of
    the transaction.
    """
    locked = Series.objects.filter(name__in=list(series)).order_by("name")
    list(locked.select_for_update())
    runs = Run.objects.filter(series=OuterRef("pk")).exclude(trigger=SCHEDULE, state=State.EXPECTED)
    sites = Site.objects.filter(Exists(Usage.objects.filter(site=OuterRef("pk"))))
    return History(
        set(locked.filter(Exists(runs)).values_list("name", flat=True)),
        set(sites.values_list("name", flat=True)),
        set(AlertRule.objects.filter(alerts__isnull=False).values_list("name", flat=True)),
    )


def _attributes(kind: type[Definition], row: models.Model) -> dict[str, Any]:
    """Return the columns of *row* that the definition has; foreign keys become names."""
    columns = [field.name for field in fields(kind) if field.name not in _JOINED]
    values = {column: getattr(row, column) for column in columns}
    references = _REFERENCES & values.keys()
    return {**values, **{column: values[column] and values[column].name for column in references}}


def _sorted_names(rows: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted(row.name for row in rows))


def _watches(rule: AlertRule) -> dict[str, Any]:
    watched = {noun: _sorted_names(getattr(rule, noun).all()) for noun in WATCHED}
    return {
        **({"everything": True} if rule.everything else {}),
        **{noun: names for noun, names in watched.items() if names},
    }


def _bindings() -> dict[int, dict[str, tuple[str, ...]]]:
    """Return the names of the bound resources in order, by series and role."""
    bindings: dict[int, dict[str, tuple[str, ...]]] = {}
    rows = Binding.objects.order_by("series_id", "role", "position")
    for series, role, resource in rows.values_list("series_id", "role", "resource__name"):
        roles = bindings.setdefault(series, {})
        roles[role] = (*roles.get(role, ()), resource)
    return bindings
