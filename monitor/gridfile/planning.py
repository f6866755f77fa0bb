"""What would change if the depot became what a file says: plain values in, plain values and text out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from monitor.alerts import conditions
from monitor.gridfile.definition import AlertDefinition, Definition, Grid
from monitor.gridfile.format import MODELS
from monitor.gridfile.problems import NOUNS, shown

_ABSENT = object()
NOTHING_TO_DO = "Nothing to do: the depot is as the file says."


@dataclass(frozen=True)
class Change:
    """One noun before and after; None where it is not there."""

    noun: str  # "sites" ...
    before: Definition | None
    after: Definition | None

    @property
    def name(self) -> str:
        return next(one.name for one in (self.before, self.after) if one is not None)

    def values(self) -> Iterator[tuple[str, Any, Any]]:
        """Every value that is not the same, by its key; of a new noun those that are no default."""
        before = {} if self.before is None else _opened(written(self.noun, self.before, defaults=True))
        after = {} if self.after is None else _opened(written(self.noun, self.after, defaults=bool(before)))
        for key in sorted({*before, *after}, key=self._order):
            old, new = before.get(key, _ABSENT), after.get(key, _ABSENT)
            if old != new:
                yield key, old, new

    def _order(self, key: str) -> tuple[int, str]:
        """That of the format; of ``bindings.sources`` and the like, by the second word."""
        first, _, second = key.partition(".")
        return list(MODELS[self.noun].model_fields).index(first), second


@dataclass(frozen=True)
class Kept:
    """What is in the depot and not in the file, and stays; *why* says so."""

    noun: str
    name: str
    why: str


@dataclass(frozen=True)
class Plan:
    """From *before* to *after*; *kept* is in both, and not in the file."""

    before: Grid
    after: Grid
    kept: tuple[Kept, ...] = ()

    def changes(self) -> list[Change]:
        """In the order in which they can be done: what others refer to comes first; removals are last."""
        made = [change for noun in NOUNS for change in self._of(noun) if change.after is not None]
        removed = [change for noun in reversed(NOUNS) for change in self._of(noun) if change.after is None]
        return made + removed

    def _of(self, noun: str) -> Iterator[Change]:
        before: Mapping[str, Definition] = getattr(self.before, noun)
        after: Mapping[str, Definition] = getattr(self.after, noun)
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield Change(noun, before.get(name), after.get(name))


@dataclass(frozen=True)
class History:
    """What must not be removed: *series* that have runs, *sites* with accounts of them, *alerts*: rules that
    have opened some."""

    series: Collection[str] = ()
    sites: Collection[str] = ()
    alerts: Collection[str] = ()


def plan(depot: Grid, file: Grid, *, prune: bool, history: History = History()) -> Plan:
    """How *depot* becomes what *file* says.

    What is not in the file stays; with *prune* it goes, unless something that stays needs it. A series with
    runs is switched off instead: nothing that was measured is ever lost here.
    """
    if prune:
        return _pruned(depot, file, history)
    kept = tuple(
        Kept(noun, name, "not in the file; kept (removed only with --prune)")
        for noun in NOUNS
        for name in sorted(getattr(depot, noun).keys() - getattr(file, noun).keys())
    )
    merged = {noun: {**getattr(depot, noun), **getattr(file, noun)} for noun in NOUNS}
    return Plan(depot, Grid(**merged), kept)


def _pruned(depot: Grid, file: Grid, history: History) -> Plan:
    old = {
        name: replace(depot.series[name], enabled=False)
        for name in sorted(_with_leaders(depot, history.series) - file.series.keys())
    }
    series = {**file.series, **old}
    bound = {name for one in old.values() for names in one.bindings.values() for name in names}
    resources = {**_needed(depot.resources, bound), **file.resources}
    suites = {**_needed(depot.suites, {one.suite for one in old.values()}), **file.suites}
    located = {one.site for one in resources.values()}
    sites = {**_needed(depot.sites, located.union(history.sites)), **file.sites}
    why = {
        "series": "not in the file; kept but switched off: it, or what follows it, has runs",
        "resources": "not in the file; kept, because a series that is kept is bound to it",
        "suites": "not in the file; kept, because a series that is kept is in it",
        "sites": "not in the file; kept, because a resource or an account of runs is there",
        "alerts": "not in the file; kept but switched off: it has opened alerts",
    }
    after = replace(file, sites=sites, resources=resources, suites=suites, series=series)
    after = replace(after, alerts={**_switched_off(depot, history.alerts, after), **file.alerts})
    kept = tuple(
        Kept(noun, name, why[noun])
        for noun in NOUNS
        for name in sorted(getattr(after, noun).keys() - getattr(file, noun).keys())
    )
    return Plan(depot, after, kept)


def _switched_off(depot: Grid, names: Collection[str], after: Grid) -> dict[str, AlertDefinition]:
    """These rules, with what is left of what they watch."""
    rules = (depot.alerts[name] for name in sorted(names))
    return {rule.name: replace(rule, enabled=False, watches=_left(rule.watches, after)) for rule in rules}


def _left(watches: Mapping[str, Any], after: Grid) -> dict[str, Any]:
    named = {
        noun: tuple(name for name in names if name in getattr(after, noun))
        for noun, names in watches.items()
        if noun != "everything"
    }
    kept = {noun: names for noun, names in named.items() if names}
    return {"everything": True, **kept} if watches.get("everything") else kept


def _with_leaders(grid: Grid, names: Collection[str]) -> set[str]:
    """*names*, and those whom they follow."""
    leaders = {grid.series[name].leader for name in names}
    return {*names, *(leader for leader in leaders if leader is not None)}


def _needed(definitions: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: one for name, one in definitions.items() if name in names}


def text(plan: Plan) -> str:
    """*plan* for a person: ``+`` is added, ``~`` changed, ``-`` removed or not in the file."""
    changes = plan.changes()
    lines = [line for change in changes for line in _lines(change)]
    lines += [f"- {NOUNS[one.noun]} {one.name}: {one.why}" for one in plan.kept]
    return "\n".join([*lines, _summary(changes, len(plan.kept))])


def _lines(change: Change) -> Iterator[str]:
    what = f"{NOUNS[change.noun]} {change.name}"
    if change.after is None:
        yield f"- {what}"
    elif change.before is None:
        yield f"+ {what}"
        yield from (f"    {key}: {_shown(new)}" for key, _, new in change.values())
    else:
        yield f"~ {what}"
        yield from (f"    {key}: {_shown(old)} -> {_shown(new)}" for key, old, new in change.values())


def _summary(changes: list[Change], kept: int) -> str:
    also = f" {kept} not in the file {'is' if kept == 1 else 'are'} kept." if kept else ""
    if not changes:
        return NOTHING_TO_DO + also
    added = sum(change.before is None for change in changes)
    removed = sum(change.after is None for change in changes)
    changed = len(changes) - added - removed
    return f"{added} to add, {changed} to change, {removed} to remove.{also}"


def written(noun: str, definition: Definition, *, defaults: bool = False) -> dict[str, Any]:
    """What a file says of *definition*, in the order of the format; *defaults* may be left out."""
    attributes = {**vars(definition), **_condition(definition)}
    keys = ((key, field) for key, field in MODELS[noun].model_fields.items() if key in attributes)
    values = ((key, _plain(attributes[key]), field) for key, field in keys)
    return {key: value for key, value, field in values if defaults or value != _default(field)}


def _condition(definition: Definition) -> dict[str, int | None]:
    """The condition of an alert rule as a file has it: a key for each kind, of which one has a value."""
    if not isinstance(definition, AlertDefinition):
        return {}
    return {
        kind: definition.threshold if kind == definition.condition else None for kind in conditions.names()
    }


def _default(field: FieldInfo) -> Any:
    default = field.get_default(call_default_factory=True)
    return default.model_dump() if isinstance(default, BaseModel) else default


def _plain(value: Any) -> Any:
    """As YAML has it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _opened(values: Mapping[str, Any]) -> dict[str, Any]:
    """*values* with the mappings among them opened: ``bindings.sources``."""
    opened: dict[str, Any] = {}
    for key, value in values.items():
        inner = {f"{key}.{one}": of for one, of in value.items()} if isinstance(value, dict) else {key: value}
        opened.update(inner)
    return opened


def _shown(value: Any) -> str:
    return "nothing" if value is _ABSENT else shown(value)
