"""Write a plan to the depot in few statements, also for thousands of series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.contrib.auth.models import Group
from django.db import models

from monitor.gridfile.definition import (
    AlertDefinition,
    Definition,
    MaintenanceDefinition,
    SeriesDefinition,
    SuiteDefinition,
)
from monitor.gridfile.planning import Change, Plan
from monitor.models import AlertRule, Binding, MaintenanceWindow, Reporter, Resource, Series, Site, Suite
from monitor.models.alert import WATCHED
from monitor.models.reporter import HOME

Table = models.Manager[Any]

_TABLES: dict[str, Table] = {
    "sites": Site.objects,
    "resources": Resource.objects,
    "suites": Suite.objects,
    "series": Series.objects,
    "maintenance": MaintenanceWindow.objects,
    "alerts": AlertRule.objects,
}
_REFERENCES: Mapping[str, Table] = {
    "site": Site.objects,
    "suite": Suite.objects,
    "reporter": Reporter.objects,
    "leader": Series.objects,
}
_JOINED = {"viewers", "bindings", "sites", "watches"}  # stored in rows of their own
_BATCH = 1000

Ids = Mapping[str, Mapping[str, int]]


def write(plan: Plan) -> None:
    """Execute *plan* inside the caller's transaction.

    Leaders are written before the series that follow them and removed after them; otherwise rows are written
    by name, in the order in which the ledger locks them.
    """
    changes = plan.changes()
    for noun, table in _TABLES.items():
        written = [change for change in changes if change.noun == noun and change.after is not None]
        _write(table, [change for change in written if not _follows(change.after)])
        _write(table, [change for change in written if _follows(change.after)])
    for noun in reversed(_TABLES):
        removed = [change for change in changes if change.noun == noun and change.after is None]
        for is_follower in (True, False):
            names = [change.name for change in removed if _follows(change.before) == is_follower]
            _TABLES[noun].filter(name__in=names).delete()


def _follows(definition: Definition | None) -> bool:
    return isinstance(definition, SeriesDefinition) and definition.leader is not None


def _write(table: Table, changes: Sequence[Change]) -> None:
    if not changes:
        return
    ids = _ids(change.after for change in changes if change.after)
    new = [
        table.model(**_row(change.after, ids)) for change in changes if change.before is None and change.after
    ]
    table.bulk_create(new, batch_size=_BATCH)
    for change in changes:
        if change.before is not None and change.after is not None:
            before, after = _row(change.before, ids), _row(change.after, ids)
            changed = {column: value for column, value in after.items() if value != before[column]}
            if changed:
                table.filter(name=change.name).update(**changed)
    _write_viewers(changes)
    _write_sites(changes)
    _write_watches(changes)
    _write_bindings(changes)


def _ids(definitions: Iterable[Definition]) -> Ids:
    """Return the ids of all rows that *definitions* may refer to, by column and name."""
    kinds = {field.name for definition in definitions for field in fields(definition)} & _REFERENCES.keys()
    if "reporter" in kinds:
        Reporter.objects.get_or_create(name=HOME)
    return {kind: dict(_REFERENCES[kind].values_list("name", "pk")) for kind in kinds}


def _row(definition: Definition, ids: Ids) -> dict[str, Any]:
    """Return the columns of the row of *definition*."""
    columns = [field.name for field in fields(definition) if field.name not in _JOINED]
    row = {column: getattr(definition, column) for column in columns}
    for reference in ids.keys() & row.keys():
        name = row.pop(reference)
        row[f"{reference}_id"] = None if name is None else ids[reference][name]
    return row


def _write_viewers(changes: Iterable[Change]) -> None:
    for change in changes:
        after, before = change.after, change.before
        if isinstance(after, SuiteDefinition):
            old_viewers = before.viewers if isinstance(before, SuiteDefinition) else ()
            if after.viewers != old_viewers:
                groups = Group.objects.filter(name__in=after.viewers)
                Suite.objects.get(name=after.name).viewers.set(groups)


def _write_sites(changes: Iterable[Change]) -> None:
    for change in changes:
        after, before = change.after, change.before
        if isinstance(after, MaintenanceDefinition):
            old_sites = before.sites if isinstance(before, MaintenanceDefinition) else ()
            if after.sites != old_sites:
                MaintenanceWindow.objects.get(name=after.name).sites.set(
                    Site.objects.filter(name__in=after.sites)
                )


def _write_watches(changes: Iterable[Change]) -> None:
    rules = [
        change.after
        for change in changes
        if isinstance(change.after, AlertDefinition) and _has_new_watches(change)
    ]
    if not rules:
        return
    ids = dict(AlertRule.objects.filter(name__in=[rule.name for rule in rules]).values_list("name", "pk"))
    for everything in (True, False):
        names = [rule.name for rule in rules if ("everything" in rule.watches) == everything]
        AlertRule.objects.filter(name__in=names).update(everything=everything)
    for noun, singular in WATCHED.items():
        through = getattr(AlertRule, noun).through
        keys = dict(_TABLES[noun].values_list("name", "pk"))
        through.objects.filter(alertrule__in=ids.values()).delete()
        through.objects.bulk_create(
            through(**{"alertrule_id": ids[rule.name], f"{singular}_id": keys[name]})
            for rule in rules
            for name in rule.watches.get(noun, ())
        )


def _has_new_watches(change: Change) -> bool:
    before, after = change.before, change.after
    return not (
        isinstance(before, AlertDefinition)
        and isinstance(after, AlertDefinition)
        and before.watches == after.watches
    )


def _write_bindings(changes: Iterable[Change]) -> None:
    rebound = [change.after for change in changes if _has_new_bindings(change)]
    series = [definition for definition in rebound if isinstance(definition, SeriesDefinition)]
    if not series:
        return
    ids = dict(
        Series.objects.filter(name__in=[definition.name for definition in series]).values_list("name", "pk")
    )
    resources = dict(Resource.objects.values_list("name", "pk"))
    Binding.objects.filter(series__in=ids.values()).delete()
    Binding.objects.bulk_create(
        [
            Binding(series_id=ids[definition.name], role=role, position=i, resource_id=resources[name])
            for definition in series
            for role, names in definition.bindings.items()
            for i, name in enumerate(names)
        ],
        batch_size=_BATCH,
    )


def _has_new_bindings(change: Change) -> bool:
    before, after = change.before, change.after
    if not isinstance(after, SeriesDefinition):
        return False
    return not isinstance(before, SeriesDefinition) or before.bindings != after.bindings
