"""One entry of the grid at a time: read, checked and written as the entry of a grid file, for the pages.

Errors::

    EntryError
    |-- EntryChanged         it is not the one that the user saw             again, after another look
    |-- EntryNotPermitted    the roles of the user do not permit the result  permanent
    '-- EntryInUse           other definitions refer to it                   again, without these
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.db.models import ProtectedError
from django.utils import timezone

from monitor.analysis.alerts import channels
from monitor.analysis.alerts.concealed_urls import sees_urls
from monitor.core.db.advisory_locks import retry_on_lock_timeout
from monitor.core.yamlfile.problems import Fault
from monitor.depot.access.audit_trail import note
from monitor.depot.series.deletion import remove_series
from monitor.models import AlertRule, Reporter, Resource, Series, SeriesDeletion, Site, Suite, Webhook
from monitor.models.reporter import HOME, MAX_AGENT_SERIES
from monitor.operations.gridfile import checking, depot, parsing
from monitor.operations.gridfile.applying import locked_transaction
from monitor.operations.gridfile.checking import KnownNames
from monitor.operations.gridfile.definition import (
    AlertDefinition,
    Definition,
    GridDefinition,
    SeriesDefinition,
)
from monitor.operations.gridfile.format import VERSION
from monitor.operations.gridfile.loading import is_consequence
from monitor.operations.gridfile.planning import Change, Difference, Plan, differences, to_entry
from monitor.operations.gridfile.problems import NOUNS
from monitor.operations.gridfile.recording import concealed, note_change
from monitor.operations.gridfile.writing import AUTHORED, set_author, write

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    User = AbstractBaseUser | AnonymousUser

Entry = Mapping[str, Any]  # as in a grid file, with all defaults


class EntryError(Exception):
    """The entry was not written."""


class EntryChanged(EntryError):
    """The entry was changed or removed meanwhile; *differences* say how."""

    def __init__(self, noun: str, name: str, seen: Entry | None, now: Entry | None) -> None:
        self.differences: Sequence[Difference] = list(differences(noun, seen, now)) if seen and now else []
        is_gone = "was deleted" if now is None else "exists already" if seen is None else "was changed"
        super().__init__(f"{NOUNS[noun]} {name} {is_gone} meanwhile")


class EntryNotPermitted(EntryError):
    pass


class EntryInUse(EntryError):
    pass


@dataclass(frozen=True)
class CheckedEntry:
    """An entry with its *faults*, whose paths begin in the entry; without faults it has a *definition*.

    *foreign* are faults, too: secrets that the user may not use.
    """

    definition: Definition | None
    faults: Sequence[Fault]
    foreign: Sequence[Fault] = ()


def find(noun: str, name: str) -> Definition | None:
    """Return the definition *name* of the section *noun* of the grid; None if there is none."""
    definitions: Mapping[str, Definition] = getattr(depot.read([noun], [name]), noun)
    return definitions.get(name)


def as_entry(noun: str, definition: Definition | None) -> Entry | None:
    return None if definition is None else to_entry(noun, definition, defaults=True)


def readable(definition: Definition | None, user: User) -> Definition | None:
    """Return the present *definition* as *user* may read it."""
    if isinstance(definition, AlertDefinition) and not sees_urls(user, definition.name):
        return concealed(definition)
    return definition


def seen_entry(noun: str, definition: Definition | None) -> Entry | None:
    """Return what tells whether a user saw *definition*, or another one; every user may have it."""
    return as_entry(noun, concealed(definition))


def check(noun: str, name: str, entry: Entry, user: User) -> CheckedEntry:
    """Check *entry* as a grid file is checked; it may refer to what *user* may see, and to user groups."""
    related = _related(noun, name, entry)
    data = {"version": VERSION, **related, noun: {**related.get(noun, {}), name: entry}}
    file, faults = parsing.parse(data)
    grid, further = checking.check(file, _known_names(user))
    faults += [fault for fault in further if not is_consequence(fault, faults)]
    own = [(path[2:], message) for path, message in faults if path[:2] == (noun, name)]
    others: list[Fault] = [
        ((), f"series {path[1]}: {message}")
        for path, message in faults
        if path[:2] != (noun, name) and path[2:] == ("leader",)
    ]
    definition = getattr(grid, noun).get(name)
    foreign = _foreign_secrets(definition, user)
    is_valid = not own and not others and not foreign and definition is not None
    if is_valid and isinstance(definition, SeriesDefinition):
        others = list(_agent_faults(definition))
        is_valid = not others
    return CheckedEntry(definition if is_valid else None, [*own, *others, *foreign], foreign)


def save(
    noun: str,
    seen: Entry | None,
    definition: Definition,
    *,
    author: User,
    is_permitted: Callable[[], bool] = lambda: True,
) -> Change:
    """Write *definition* of *author* in place of the one with the ``seen_entry`` *seen*; return the change.

    *seen* is None for a new one.
    An alert rule or a webhook acts with the rights of *author* from then on, also if nothing else changes.
    *is_permitted* is asked after the change, before it is committed.

    Raises:
        EntryChanged, EntryNotPermitted: nothing was written.
    """
    name = definition.name
    with locked_transaction():
        before = find(noun, name)
        if seen_entry(noun, before) != seen:
            raise EntryChanged(noun, name, seen, seen_entry(noun, before))
        change = Change(noun, before, definition)
        plan = Plan(_only(noun, before), _only(noun, definition))
        author_before = author_of(noun, name)
        retry_on_lock_timeout(lambda: write(plan, author=author))
        if noun in AUTHORED:
            set_author(noun, name, author)
        if not is_permitted():
            raise EntryNotPermitted(f"your roles do not permit this {NOUNS[noun]}")
    if before != definition:
        note_change(change)
    if before is not None and author_before != author_of(noun, name):
        note(f"author of {NOUNS[noun]}", name, before=author_before, after=author_of(noun, name))
    return change


def author_of(noun: str, name: str) -> str:
    """Return the author of the entry *name*, with the identity by which it acts; empty: it has none."""
    table: Any = {"alerts": AlertRule.objects, "webhooks": Webhook.objects}.get(noun)
    row = None if table is None else table.filter(name=name).select_related("identity").first()
    return "" if row is None else row.authorship


def remove(noun: str, name: str, seen: Entry | None, *, who: str) -> bool:
    """Delete the entry *seen* of this *name*; of a series, all that was measured too.

    Return False for a series with many runs, which the control worker deletes
    (``monitor.depot.series.deletion``).

    Raises:
        EntryChanged, EntryInUse: nothing was deleted.
    """
    under_way: Sequence[SeriesDeletion] = ()
    try:
        with locked_transaction():
            before = find(noun, name)
            if before is None or seen_entry(noun, before) != seen:
                raise EntryChanged(noun, name, seen, seen_entry(noun, before))
            if noun == "series":
                under_way = remove_series(Series.objects.filter(name=name), who=who, now=timezone.now())
            else:
                write(Plan(_only(noun, before), GridDefinition()))
    except ProtectedError as error:
        users = sorted({str(each) for each in error.protected_objects})
        more = ", ..." if len(users) > 5 else ""
        raise EntryInUse(f"{NOUNS[noun]} {name} is used by {', '.join(users[:5])}{more}") from None
    note_change(Change(noun, before, None))
    return not under_way


def _only(noun: str, definition: Definition | None) -> GridDefinition:
    return GridDefinition(**({noun: {definition.name: definition}} if definition else {}))  # type: ignore[arg-type]


def _related(noun: str, name: str, entry: Entry) -> dict[str, dict[str, Entry]]:
    """Return the entries of the depot that decide together with *entry*: resources, leader and followers."""
    if noun != "series":
        return {}
    bindings = entry.get("bindings")
    bound = bindings.values() if isinstance(bindings, Mapping) else ()
    resources = [each for names in bound if isinstance(names, list | tuple) for each in names]
    followers = Series.objects.filter(leader__name=name).exclude(name=name).values_list("name", flat=True)
    series = {*followers, *filter(None, [entry.get("leader")])} - {name}
    grid = depot.read(["series"], series)
    resources += [each for row in grid.series.values() for names in row.bindings.values() for each in names]
    grid_resources = depot.read(["resources"], resources).resources
    return {
        "resources": {each: to_entry("resources", row) for each, row in grid_resources.items()},
        "series": {each: to_entry("series", row) for each, row in grid.series.items()},
    }


def _known_names(user: User) -> KnownNames:
    visible = {model: model.objects.visible_to(user) for model in (Site, Resource, Suite, Series)}
    names = {model: set(rows.values_list("name", flat=True)) for model, rows in visible.items()}
    reporters = Reporter.objects.manageable_or_visible_to(user)
    return KnownNames(
        sites=names[Site],
        resources=names[Resource],
        suites=names[Suite],
        reporters={HOME: None, **dict(reporters.values_list("name", "site__name"))},
        groups=set(Group.objects.values_list("name", flat=True)),
        windows={},
        series=names[Series],
        deleting=set(SeriesDeletion.objects.under_way().values_list("name", flat=True)),
        default_rules=set(AlertRule.objects.filter(is_default=True).values_list("name", flat=True)),
    )


def _foreign_secrets(definition: Definition | None, user: User) -> Sequence[Fault]:
    """Return a fault for each secret that an alert rule names and that is not one of *user*."""
    if not isinstance(definition, AlertDefinition):
        return []
    return [
        (("notify", number, *path), message)
        for number, channel in enumerate(definition.notify)
        for path, message in channels.foreign_secrets(channel, user)
    ]


def _agent_faults(series: SeriesDefinition) -> Sequence[Fault]:
    """Return the fault that the agent of *series* would run too many series, if so."""
    if not series.enabled or not Reporter.objects.filter(name=series.reporter, site__isnull=False).exists():
        return []
    others = Series.objects.filter(reporter__name=series.reporter, enabled=True).exclude(name=series.name)
    if others.count() < MAX_AGENT_SERIES:
        return []
    return [(("reporter",), f"it runs {MAX_AGENT_SERIES:,} series already, the most of an agent")]
