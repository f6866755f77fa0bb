"""Read the grid of the depot as plain values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields
from typing import Any, TypeVar

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Exists, OuterRef, Q

from monitor.analysis.webhooks.define import definition_of
from monitor.models import (
    AlertRule,
    AvailabilityProfile,
    Binding,
    MaintenanceWindow,
    OwnSignature,
    Reporter,
    Resource,
    Run,
    Series,
    SeriesDeletion,
    Site,
    Suite,
    Usage,
    Webhook,
)
from monitor.models.alert import WATCHED
from monitor.models.reporter import HOME
from monitor.models.run import SCHEDULE, State
from monitor.operations.gridfile.definition import (
    AlertDefinition,
    AvailabilityProfileDefinition,
    Definition,
    GridDefinition,
    MaintenanceDefinition,
    ReporterDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SignatureDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.operations.gridfile.loading import DepotNames
from monitor.operations.gridfile.planning import History
from monitor.operations.gridfile.problems import NOUNS

Names = Collection[str] | None
Row = TypeVar("Row", bound=models.Model)
_JOINED = {"viewers", "bindings", "sites", "watches", "notify"}
_REFERENCES = {"site", "suite", "reporter", "leader"}


def read(nouns: Collection[str] = tuple(NOUNS), names: Collection[str] | None = None) -> GridDefinition:
    """Return the sections *nouns* of the grid as the depot defines it; the other sections are empty.

    With *names*, only the definitions of these names are read, among them rules that the service made.
    """
    sections: dict[str, Any] = {noun: {row.name: row for row in _SECTIONS[noun](names)} for noun in nouns}
    return GridDefinition(**sections)


def _chosen(rows: models.QuerySet[Row], names: Names) -> models.QuerySet[Row]:
    return rows if names is None else rows.filter(name__in=names)


def _sites(names: Names) -> Iterator[Definition]:
    rows = _chosen(Site.objects.all(), names)
    return (SiteDefinition(**_attributes(SiteDefinition, row)) for row in rows)


def _resources(names: Names) -> Iterator[Definition]:
    rows = _chosen(Resource.objects.select_related("site"), names)
    return (ResourceDefinition(**_attributes(ResourceDefinition, row)) for row in rows)


def _reporters(names: Names) -> Iterator[Definition]:
    rows = _chosen(Reporter.objects.exclude(name=HOME).select_related("site"), names)
    return (ReporterDefinition(**_attributes(ReporterDefinition, row)) for row in rows)


def _suites(names: Names) -> Iterator[Definition]:
    for row in _chosen(Suite.objects.prefetch_related("viewers"), names):
        viewers = _sorted_names(row.viewers.all())
        yield SuiteDefinition(**_attributes(SuiteDefinition, row), viewers=viewers)


def _series(names: Names) -> Iterator[Definition]:
    rows = _chosen(Series.objects.select_related("suite", "reporter", "leader"), names)
    bindings = _bindings(None if names is None else [row.pk for row in rows]) if rows else {}
    for row in rows:
        yield SeriesDefinition(**_attributes(SeriesDefinition, row), bindings=bindings.get(row.pk, {}))


def _windows(names: Names) -> Iterator[Definition]:
    for row in _chosen(MaintenanceWindow.objects.configured().prefetch_related("sites"), names):
        sites = _sorted_names(row.sites.all())
        yield MaintenanceDefinition(**_attributes(MaintenanceDefinition, row), sites=sites)


def _alert_rules(names: Names) -> Iterator[Definition]:
    rows = AlertRule.objects.filter(is_default=False) if names is None else AlertRule.objects.all()
    for row in _chosen(rows.prefetch_related(*WATCHED), names):
        attributes = _attributes(AlertDefinition, row)
        yield AlertDefinition(**attributes, watches=_watches(row), notify=tuple(row.notify))


def _profiles(names: Names) -> Iterator[Definition]:
    for row in _chosen(AvailabilityProfile.objects.prefetch_related("sites"), names):
        attributes = _attributes(AvailabilityProfileDefinition, row)
        yield AvailabilityProfileDefinition(**attributes, sites=_sorted_names(row.sites.all()))


def _signatures(names: Names) -> Iterator[Definition]:
    for row in _chosen(OwnSignature.objects.all(), names):
        attributes = _attributes(SignatureDefinition, row)
        lists = {key: tuple(value) for key, value in attributes.items() if isinstance(value, list)}
        yield SignatureDefinition(**{**attributes, **lists})


def _webhooks(names: Names) -> Iterator[Definition]:
    rows = _chosen(Webhook.objects.prefetch_related("suites", "sites"), names)
    return (definition_of(row) for row in rows)


_SECTIONS: dict[str, Callable[[Names], Iterator[Definition]]] = {
    "sites": _sites,
    "resources": _resources,
    "reporters": _reporters,
    "suites": _suites,
    "series": _series,
    "maintenance": _windows,
    "alerts": _alert_rules,
    "availability_profiles": _profiles,
    "signatures": _signatures,
    "webhooks": _webhooks,
}


def names() -> DepotNames:
    """Return the names that a file may use without defining them, and the windows that it must not define."""
    reporters = dict(Reporter.objects.values_list("name", "site__name"))
    windows = MaintenanceWindow.objects.exclude(source="").values_list("name", "source")
    groups = set(Group.objects.values_list("name", flat=True))
    deleting = set(SeriesDeletion.objects.under_way().values_list("name", flat=True))
    return DepotNames({HOME: None, **reporters}, groups, dict(windows), deleting)


def history(series: Iterable[str]) -> History:
    """Return the names that must not be removed.

    These are the names of *series* with runs, of sites with usage, of reporters that have enrolled or sent
    records, and of rules that opened alerts. Expected runs of future slots do not count. The series are
    locked: they get no new run until the end of the transaction.
    """
    locked = Series.objects.filter(name__in=list(series)).order_by("name")
    list(locked.select_for_update())
    runs = Run.objects.filter(series=OuterRef("pk")).exclude(trigger=SCHEDULE, state=State.EXPECTED)
    reporters = Reporter.objects.filter(Q(keys__isnull=False) | Q(chains__isnull=False)).distinct()
    sites = Site.objects.filter(Exists(Usage.objects.filter(site=OuterRef("pk"))))
    return History(
        set(locked.filter(Exists(runs)).values_list("name", flat=True)),
        set(sites.values_list("name", flat=True)),
        set(reporters.values_list("name", flat=True)),
        set(AlertRule.objects.filter(is_default=False, alerts__isnull=False).values_list("name", flat=True)),
    )


def _attributes(kind: type[Definition], row: models.Model) -> dict[str, Any]:
    """Return the columns of *row* that are fields of the definition *kind*; foreign keys become names."""
    columns = [field.name for field in fields(kind) if field.name not in _JOINED]
    values = {column: getattr(row, column) for column in columns}
    references = _REFERENCES & values.keys()
    return {**values, **{column: values[column] and values[column].name for column in references}}


def _sorted_names(rows: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted(row.name for row in rows))


def _watches(rule: AlertRule) -> dict[str, Any]:
    watched = {noun: _sorted_names(getattr(rule, noun).all()) for noun in WATCHED}
    watched["probes"] = tuple(sorted(rule.probes))
    return {
        **({"everything": True} if rule.everything else {}),
        **{noun: names for noun, names in watched.items() if names},
    }


def _bindings(series: Collection[int] | None) -> dict[int, dict[str, tuple[str, ...]]]:
    """Return the names of the bound resources in order: by primary key of the series, then by role.

    None instead of the primary keys of *series* means all series.
    """
    bindings: dict[int, dict[str, tuple[str, ...]]] = {}
    rows = Binding.objects.order_by("series_id", "role", "position")
    if series is not None:
        rows = rows.filter(series__in=series)
    for key, role, resource in rows.values_list("series_id", "role", "resource__name"):
        roles = bindings.setdefault(key, {})
        roles[role] = (*roles.get(role, ()), resource)
    return bindings
