"""Write a plan to the depot in few statements, also for thousands of series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone

from monitor.analysis.availability.versions import record_versions
from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.signatures.active import active_signatures, store
from monitor.analysis.webhooks.define import WebhookDefinition, follow_runs
from monitor.models import (
    AlertRule,
    AvailabilityProfile,
    Binding,
    MaintenanceWindow,
    OwnSignature,
    Reporter,
    Resource,
    Series,
    Site,
    Suite,
    Webhook,
    WebhookReceiver,
)
from monitor.models.alert import WATCHED
from monitor.models.author import by
from monitor.models.reporter import HOME
from monitor.operations.gridfile.definition import (
    AlertDefinition,
    AvailabilityProfileDefinition,
    Definition,
    MaintenanceDefinition,
    SeriesDefinition,
    SuiteDefinition,
)
from monitor.operations.gridfile.planning import Change, Plan, to_entry

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    User = AbstractBaseUser | AnonymousUser

Table = models.Manager[Any]
GRID_FILE = "a grid file"  # instead of the user that changed something

_TABLES: dict[str, Table] = {
    "sites": Site.objects,
    "resources": Resource.objects,
    "reporters": Reporter.objects,
    "suites": Suite.objects,
    "series": Series.objects,
    "maintenance": MaintenanceWindow.objects,
    "alerts": AlertRule.objects,
    "availability_profiles": AvailabilityProfile.objects,
    "signatures": OwnSignature.objects,
    "webhooks": Webhook.objects,
}
_REFERENCES = {"site": "sites", "suite": "suites", "reporter": "reporters", "leader": "series"}
_JOINED = {"viewers", "bindings", "suites", "sites", "watches"}  # stored in rows of their own
AUTHORED = ("alerts", "webhooks")  # act later, with the rights of their authors
_BATCH = 1000
_AtSites = MaintenanceDefinition | AvailabilityProfileDefinition | WebhookDefinition


class RowIds:
    """The ids of the rows of the depot by noun and name; an unknown name causes a read of its table."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, int]] = defaultdict(dict)

    def add(self, noun: str, rows: Iterable[Any]) -> None:
        self._ids[noun].update((row.name, row.pk) for row in rows)

    def find(self, noun: str, name: str) -> int:
        """Return the id of the row *name*. Raises KeyError if no row has this name."""
        ids = self._ids[noun]
        if name not in ids:
            ids.update(_TABLES[noun].order_by().values_list("name", "pk"))
            if noun == "reporters" and HOME not in ids:
                self.add(noun, [_create_home()])
        return ids[name]


def _create_home() -> Reporter:
    """Create the home reporter; if another transaction has created it meanwhile, return that reporter."""
    (home,) = Reporter.objects.bulk_create(
        [Reporter(name=HOME)], update_conflicts=True, unique_fields=["name"], update_fields=["name"]
    )
    return home


def write(plan: Plan, *, author: User | None = None) -> None:
    """Execute *plan* of *author* inside the caller's transaction; None: a grid file or a command.

    Leaders are written before the series that follow them, and removed after these series. Otherwise rows are
    written in the order of their names, as the ledger locks them.
    """
    changes, ids, authorship = plan.changes(), RowIds(), by(author)
    for noun in _TABLES:
        written = [change for change in changes if change.noun == noun and change.after is not None]
        _write(noun, [change for change in written if not _follows(change.after)], ids, authorship)
        _write(noun, [change for change in written if _follows(change.after)], ids, authorship)
    for noun in reversed(_TABLES):
        removed = [change for change in changes if change.noun == noun and change.after is None]
        for is_follower in (True, False):
            names = [change.name for change in removed if _follows(change.before) == is_follower]
            if not names:
                continue
            if noun == "sites":
                _delete_announced(names)
            _TABLES[noun].filter(name__in=names).delete()
    if any(change.noun == "availability_profiles" for change in changes):
        record_versions(timezone.now())
    _record_signatures([change for change in changes if change.noun == "signatures"])
    if any(change.noun == "webhooks" for change in changes):
        follow_runs()
    rules = [change.after for change in changes if isinstance(change.after, AlertDefinition)]
    WebhookReceiver.objects.welcome(channel.get("url", "") for rule in rules for channel in rule.notify)


def _record_signatures(changes: Sequence[Change]) -> None:
    """Record the changes of own signatures; what pages list then agrees with them at once."""
    now = timezone.now()
    for change in changes:
        before, after = (
            None if each is None else to_entry(change.noun, each) for each in (change.before, change.after)
        )
        own_signatures.record_grid_file(change.name, before, after, now)
    if changes:
        store(active_signatures())


def _follows(definition: Definition | None) -> bool:
    return isinstance(definition, SeriesDefinition) and definition.leader is not None


def _delete_announced(sites: Sequence[str]) -> None:
    """Delete windows of feeds that are only at *sites*: without sites, a window is everywhere."""
    kept = Site.objects.exclude(name__in=sites)
    announced = MaintenanceWindow.objects.exclude(source="").filter(sites__name__in=sites)
    announced.exclude(sites__in=kept).distinct().delete()


def _write(noun: str, changes: Sequence[Change], ids: RowIds, authorship: Mapping[str, Any]) -> None:
    if not changes:
        return
    table = _TABLES[noun]
    who = authorship["author_name"] or GRID_FILE
    origin = {"created_at": timezone.now(), "created_by": who[:150]} if noun == "webhooks" else {}
    new = [
        table.model(**_row(change.after, ids), **origin)
        for change in changes
        if change.before is None and change.after
    ]
    ids.add(noun, table.bulk_create(new, batch_size=_BATCH))
    for change in changes:
        if change.before is not None and change.after is not None:
            before, after = _row(change.before, ids), _row(change.after, ids)
            changed = {column: value for column, value in after.items() if value != before[column]}
            if changed:
                table.filter(name=change.name).update(**changed)
    if noun in AUTHORED:
        table.filter(name__in=[change.name for change in changes]).update(**authorship)
    _write_viewers(changes)
    _write_sites(changes)
    _write_suites(changes)
    _write_watches(changes, ids)
    _write_bindings(changes, ids)


def set_author(noun: str, name: str, author: User) -> None:
    """Make *author* the author of the entry *name*: it acts with the rights of that user."""
    _TABLES[noun].filter(name=name).update(**by(author))


def _row(definition: Definition, ids: RowIds) -> dict[str, Any]:
    """Return the columns of the row of *definition*; *ids* resolves references."""
    columns = [field.name for field in fields(definition) if field.name not in _JOINED]
    row = {column: getattr(definition, column) for column in columns}
    for reference in _REFERENCES.keys() & row.keys():
        name = row.pop(reference)
        row[f"{reference}_id"] = None if name is None else ids.find(_REFERENCES[reference], name)
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
        if isinstance(after, _AtSites):
            old_sites = before.sites if isinstance(before, _AtSites) else ()
            if after.sites != old_sites:
                row = _TABLES[change.noun].get(name=after.name)
                row.sites.set(Site.objects.filter(name__in=after.sites))


def _write_suites(changes: Iterable[Change]) -> None:
    for change in changes:
        after, before = change.after, change.before
        if isinstance(after, WebhookDefinition):
            old_suites = before.suites if isinstance(before, WebhookDefinition) else ()
            if after.suites != old_suites:
                hook = Webhook.objects.get(name=after.name)
                hook.suites.set(Suite.objects.filter(name__in=after.suites))


def _write_watches(changes: Iterable[Change], ids: RowIds) -> None:
    rules = [
        change.after
        for change in changes
        if isinstance(change.after, AlertDefinition) and _has_new_watches(change)
    ]
    if not rules:
        return
    keys = {rule.name: ids.find("alerts", rule.name) for rule in rules}
    for everything, probes in {_not_in_rows(rule) for rule in rules}:
        names = [rule.name for rule in rules if _not_in_rows(rule) == (everything, probes)]
        AlertRule.objects.filter(name__in=names).update(everything=everything, probes=list(probes))
    for noun, singular in WATCHED.items():
        through = getattr(AlertRule, noun).through
        through.objects.filter(alertrule__in=keys.values()).delete()
        through.objects.bulk_create(
            through(**{"alertrule_id": keys[rule.name], f"{singular}_id": ids.find(noun, name)})
            for rule in rules
            for name in rule.watches.get(noun, ())
        )


def _not_in_rows(rule: AlertDefinition) -> tuple[bool, tuple[str, ...]]:
    """Return what *rule* watches without naming rows of the depot: everything, and the series of probes."""
    return "everything" in rule.watches, tuple(rule.watches.get("probes", ()))


def _has_new_watches(change: Change) -> bool:
    before, after = change.before, change.after
    return not (
        isinstance(before, AlertDefinition)
        and isinstance(after, AlertDefinition)
        and before.watches == after.watches
    )


def _write_bindings(changes: Iterable[Change], ids: RowIds) -> None:
    rebound = [change for change in changes if _has_new_bindings(change)]
    old = [ids.find("series", change.name) for change in rebound if change.before is not None]
    if old:
        Binding.objects.filter(series__in=old).delete()
    series = [change.after for change in rebound if isinstance(change.after, SeriesDefinition)]
    Binding.objects.bulk_create(
        [
            Binding(
                series_id=ids.find("series", definition.name),
                role=role,
                position=position,
                resource_id=ids.find("resources", name),
            )
            for definition in series
            for role, names in definition.bindings.items()
            for position, name in enumerate(names)
        ],
        batch_size=_BATCH,
    )


def _has_new_bindings(change: Change) -> bool:
    before, after = change.before, change.after
    if not isinstance(after, SeriesDefinition):
        return False
    return not isinstance(before, SeriesDefinition) or before.bindings != after.bindings
