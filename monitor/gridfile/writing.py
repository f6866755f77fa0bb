"""Make the depot what a plan says, in few statements: thousands of series are written at once."""

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
_JOINED = {"viewers", "bindings", "sites", "watches"}  # rows of their own
_BATCH = 1000

Ids = Mapping[str, Mapping[str, int]]


def write(plan: Plan) -> None:
    """Do what *plan* says. To be called in a transaction.

    Who leads is written before who follows, and removed after him; else it goes by name, as the ledger locks.
    """
    changes = plan.changes()
    for noun, table in _TABLES.items():
        mine = [change for change in changes if change.noun == noun and change.after is not None]
        _write(table, [change for change in mine if not _follows(change.after)])
        _write(table, [change for change in mine if _follows(change.after)])
    for noun in reversed(_TABLES):
        gone = [change for change in changes if change.noun == noun and change.after is None]
        for following in (True, False):
            names = [change.name for change in gone if _follows(change.before) == following]
            _TABLES[noun].filter(name__in=names).delete()


def _follows(definition: Definition | None) -> bool:
    return isinstance(definition, SeriesDefinition) and definition.leader is not None


def _write(table: Table, changes: Sequence[Change]) -> None:
    if not changes:
        return
    ids = _ids(change.after for change in changes if change.after)
    new = [table.model(**_row(one.after, ids)) for one in changes if one.before is None and one.after]
    table.bulk_create(new, batch_size=_BATCH)
    for change in changes:
        if change.before is not None and change.after is not None:
            before, after = _row(change.before, ids), _row(change.after, ids)
            changed = {column: value for column, value in after.items() if value != before[column]}
            if changed:
                table.filter(name=change.name).update(**changed)
    _join_viewers(changes)
    _join_sites(changes)
    _watch(changes)
    _bind(changes)


def _ids(definitions: Iterable[Definition]) -> Ids:
    """The ids of everything that *definitions* may refer to, by kind and name."""
    kinds = {field.name for one in definitions for field in fields(one)} & _REFERENCES.keys()
    if "reporter" in kinds:
        Reporter.objects.get_or_create(name=HOME)
    return {kind: dict(_REFERENCES[kind].values_list("name", "pk")) for kind in kinds}


def _row(definition: Definition, ids: Ids) -> dict[str, Any]:
    """The columns of the row of *definition*."""
    row = {one.name: getattr(definition, one.name) for one in fields(definition) if one.name not in _JOINED}
    for reference in ids.keys() & row.keys():
        name = row.pop(reference)
        row[f"{reference}_id"] = None if name is None else ids[reference][name]
    return row


def _join_viewers(changes: Iterable[Change]) -> None:
    for change in changes:
        after, before = change.after, change.before
        if isinstance(after, SuiteDefinition):
            had = before.viewers if isinstance(before, SuiteDefinition) else ()
            if after.viewers != had:
                groups = Group.objects.filter(name__in=after.viewers)
                Suite.objects.get(name=after.name).viewers.set(groups)


def _join_sites(changes: Iterable[Change]) -> None:
    for change in changes:
        after, before = change.after, change.before
        if isinstance(after, MaintenanceDefinition):
            had = before.sites if isinstance(before, MaintenanceDefinition) else ()
            if after.sites != had:
                MaintenanceWindow.objects.get(name=after.name).sites.set(
                    Site.objects.filter(name__in=after.sites)
                )


def _watch(changes: Iterable[Change]) -> None:
    rules = [one.after for one in changes if isinstance(one.after, AlertDefinition) and _is_rewatched(one)]
    if not rules:
        return
    ids = dict(AlertRule.objects.filter(name__in=[rule.name for rule in rules]).values_list("name", "pk"))
    for everything in (True, False):
        names = [rule.name for rule in rules if ("everything" in rule.watches) == everything]
        AlertRule.objects.filter(name__in=names).update(everything=everything)
    for noun, one in WATCHED.items():
        through = getattr(AlertRule, noun).through
        keys = dict(_TABLES[noun].values_list("name", "pk"))
        through.objects.filter(alertrule__in=ids.values()).delete()
        through.objects.bulk_create(
            through(**{"alertrule_id": ids[rule.name], f"{one}_id": keys[name]})
            for rule in rules
            for name in rule.watches.get(noun, ())
        )


def _is_rewatched(change: Change) -> bool:
    before, after = change.before, change.after
    return not (
        isinstance(before, AlertDefinition)
        and isinstance(after, AlertDefinition)
        and before.watches == after.watches
    )


def _bind(changes: Iterable[Change]) -> None:
    rebound = [change.after for change in changes if _is_rebound(change)]
    series = [one for one in rebound if isinstance(one, SeriesDefinition)]
    if not series:
        return
    ids = dict(Series.objects.filter(name__in=[one.name for one in series]).values_list("name", "pk"))
    resources = dict(Resource.objects.values_list("name", "pk"))
    Binding.objects.filter(series__in=ids.values()).delete()
    Binding.objects.bulk_create(
        [
            Binding(series_id=ids[one.name], role=role, position=i, resource_id=resources[name])
            for one in series
            for role, names in one.bindings.items()
            for i, name in enumerate(names)
        ],
        batch_size=_BATCH,
    )


def _is_rebound(change: Change) -> bool:
    before, after = change.before, change.after
    if not isinstance(after, SeriesDefinition):
        return False
    return not isinstance(before, SeriesDefinition) or before.bindings != after.bindings
