"""Compare two grids; plan and describe the changes from one to the other. Pure functions of values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from monitor.core.yamlfile.problems import quoted
from monitor.models.reporter import HOME
from monitor.operations.gridfile.alert_entries import CONDITIONS
from monitor.operations.gridfile.definition import (
    AlertDefinition,
    Definition,
    GridDefinition,
    ResourceDefinition,
)
from monitor.operations.gridfile.format import MODELS
from monitor.operations.gridfile.problems import NOUNS

ABSENT: Any = object()  # instead of a value that one of two entries lacks
Difference = tuple[str, Any, Any]  # key, old value, new value
NO_CHANGES = "No changes: the depot matches the file."


@dataclass(frozen=True)
class Change:
    """The change of one definition from *before* to *after*; None: the definition does not exist."""

    noun: str  # a section of the file: "sites" ...
    before: Definition | None
    after: Definition | None

    @property
    def name(self) -> str:
        return next(definition.name for definition in (self.before, self.after) if definition is not None)

    def values(self) -> Iterator[Difference]:
        """Yield (key, old value, new value) of each value that differs; omit defaults of a new definition."""
        before = None if self.before is None else to_entry(self.noun, self.before, defaults=True)
        after = None if self.after is None else to_entry(self.noun, self.after, defaults=before is not None)
        return differences(self.noun, before, after)


@dataclass(frozen=True)
class KeptDefinition:
    """A definition of the depot that is not in the file, and the reason to keep it."""

    noun: str
    name: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The grid *before* and *after*; *kept* lists definitions that the file lacks and the plan keeps."""

    before: GridDefinition
    after: GridDefinition
    kept: tuple[KeptDefinition, ...] = ()

    def changes(self) -> list[Change]:
        """Return the changes in executable order.

        A definition is written before definitions that refer to it. Removals come last, in the reverse order.
        """
        writes = [change for noun in NOUNS for change in self._of(noun) if change.after is not None]
        removals = [change for noun in reversed(NOUNS) for change in self._of(noun) if change.after is None]
        return writes + removals

    def new_series(self) -> list[str]:
        """Return the names of the enabled series that the plan adds."""
        new = self.after.series.keys() - self.before.series.keys()
        return sorted(name for name in new if self.after.series[name].enabled)

    def _of(self, noun: str) -> Iterator[Change]:
        before: Mapping[str, Definition] = getattr(self.before, noun)
        after: Mapping[str, Definition] = getattr(self.after, noun)
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield Change(noun, before.get(name), after.get(name))


@dataclass(frozen=True)
class History:
    """Names that must not be removed: series with runs, sites with usage, reporters that have enrolled, rules
    that opened alerts."""

    series: Collection[str] = ()
    sites: Collection[str] = ()
    reporters: Collection[str] = ()
    alerts: Collection[str] = ()


def plan(depot: GridDefinition, file: GridDefinition, *, prune: bool, history: History = History()) -> Plan:
    """Plan the changes from the grid of *depot* to the grid of *file*.

    Definitions that are not in the file are kept. With *prune* they are removed, unless a kept definition
    refers to them. A series with runs, according to *history*, is disabled instead: a plan never deletes
    measurements.
    """
    if prune:
        return _pruned(depot, file, history)
    kept = tuple(
        KeptDefinition(noun, name, "not in the file; kept (removed only with --prune)")
        for noun in NOUNS
        for name in sorted(getattr(depot, noun).keys() - getattr(file, noun).keys())
    )
    merged = {noun: {**getattr(depot, noun), **getattr(file, noun)} for noun in NOUNS}
    return Plan(depot, GridDefinition(**merged), kept)


def _pruned(depot: GridDefinition, file: GridDefinition, history: History) -> Plan:
    old = {
        name: replace(depot.series[name], enabled=False)
        for name in sorted(_with_leaders(depot, history.series) - file.series.keys())
    }
    series = {**file.series, **old}
    bound = {name for kept in old.values() for names in kept.bindings.values() for name in names}
    resources = {**_needed(depot.resources, bound), **file.resources}
    suites = {**_needed(depot.suites, {kept.suite for kept in old.values()}), **file.suites}
    running = {*history.reporters, *(kept.reporter for kept in old.values())}
    reporters = {**_needed(depot.reporters, running), **file.reporters}
    located = {place.site for place in (*resources.values(), *reporters.values()) if place.site is not None}
    sites = {**_needed(depot.sites, located.union(history.sites)), **file.sites}
    reasons = {
        "series": "not in the file; kept but disabled: it, or a series that follows it, has runs",
        "resources": "not in the file; kept, because a kept series is bound to it",
        "reporters": "not in the file; kept, because it has enrolled, or a kept series belongs to it",
        "suites": "not in the file; kept, because a kept series belongs to it",
        "sites": "not in the file; kept: a kept resource or reporter is there, or it has usage",
        "alerts": "not in the file; kept but disabled: it has opened alerts",
    }
    after = replace(file, sites=sites, resources=resources, reporters=reporters, suites=suites, series=series)
    after = replace(after, alerts={**_disabled(depot, history.alerts, after), **file.alerts})
    kept = tuple(
        KeptDefinition(noun, name, reasons[noun])
        for noun in NOUNS
        for name in sorted(getattr(after, noun).keys() - getattr(file, noun).keys())
    )
    return Plan(depot, after, kept)


def _disabled(
    depot: GridDefinition, names: Collection[str], after: GridDefinition
) -> dict[str, AlertDefinition]:
    """Return the alert rules *names* of *depot*, disabled; names that *after* lacks are no longer watched."""
    rules = (depot.alerts[name] for name in sorted(names))
    return {
        rule.name: replace(rule, enabled=False, watches=_remaining(rule.watches, after)) for rule in rules
    }


def _remaining(watches: Mapping[str, Any], after: GridDefinition) -> dict[str, Any]:
    remaining = {
        noun: tuple(name for name in names if noun == "probes" or name in _names(after, noun))
        for noun, names in watches.items()
        if noun != "everything"
    }
    kept = {noun: names for noun, names in remaining.items() if names}
    return {"everything": True, **kept} if watches.get("everything") else kept


def _names(grid: GridDefinition, noun: str) -> Collection[str]:
    """Return the names that alert rules may watch."""
    return {HOME, *grid.reporters} if noun == "reporters" else getattr(grid, noun)


def _with_leaders(grid: GridDefinition, names: Collection[str]) -> set[str]:
    """Return the series *names* and their leaders."""
    leaders = {grid.series[name].leader for name in names}
    return {*names, *(leader for leader in leaders if leader is not None)}


def _needed(definitions: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: definition for name, definition in definitions.items() if name in names}


def format_plan(plan: Plan) -> str:
    """Return *plan* as text: ``+`` is an addition, ``~`` a change, ``-`` a removal or a kept definition."""
    changes = plan.changes()
    lines = [line for change in changes for line in _lines(change)]
    lines += [f"- {NOUNS[kept.noun]} {kept.name}: {kept.reason}" for kept in plan.kept]
    return "\n".join([*lines, _summary(changes, len(plan.kept))])


def differences(
    noun: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Iterator[Difference]:
    """Yield key, old and new value of each value that differs between two entries of a file."""
    old, new = _flatten(before or {}), _flatten(after or {})
    for key in sorted({*old, *new}, key=lambda key: _order(noun, key)):
        values = old.get(key, ABSENT), new.get(key, ABSENT)
        if values[0] != values[1]:
            yield key, *values


def describe(difference: Difference) -> str:
    """Return *difference* as text: ``schedule: "@hourly" -> "@daily"``."""
    key, old, new = difference
    return f"{key}: {_value_text(old)} -> {_value_text(new)}"


def _order(noun: str, key: str) -> tuple[int, str]:
    """Return the sort key of *key*: the place of its first part in the format, then its second part.

    The key ``bindings.sources`` has two parts.
    """
    first, _, second = key.partition(".")
    return list(MODELS[noun].model_fields).index(first), second


def _lines(change: Change) -> Iterator[str]:
    label = f"{NOUNS[change.noun]} {change.name}"
    if change.after is None:
        yield f"- {label}"
    elif change.before is None:
        yield f"+ {label}"
        yield from (f"    {key}: {_value_text(new)}" for key, _, new in change.values())
    else:
        yield f"~ {label}"
        yield from (f"    {describe(difference)}" for difference in change.values())


def _summary(changes: list[Change], kept: int) -> str:
    also = f" {kept} not in the file {'is' if kept == 1 else 'are'} kept." if kept else ""
    if not changes:
        return NO_CHANGES + also
    added = sum(change.before is None for change in changes)
    removed = sum(change.after is None for change in changes)
    changed = len(changes) - added - removed
    return f"{added} to add, {changed} to change, {removed} to remove.{also}"


def to_entry(noun: str, definition: Definition, *, defaults: bool = False) -> dict[str, Any]:
    """Return the entry of *definition* in a file, with keys in the order of the format.

    Values that are defaults are omitted unless *defaults* is set.
    """
    attributes = {**vars(definition), **_condition(definition), **_storage(definition)}
    keys = ((key, field) for key, field in MODELS[noun].model_fields.items() if key in attributes)
    values = ((key, _plain(attributes[key]), field) for key, field in keys)
    return {key: value for key, value, field in values if defaults or value != _default(field)}


def _condition(definition: Definition) -> dict[str, int | None]:
    """Return the condition of an alert rule as in a file: thresholds by kind; all but one are None."""
    if not isinstance(definition, AlertDefinition):
        return {}
    return {kind: definition.threshold if kind == definition.condition else None for kind in CONDITIONS}


def _storage(definition: Definition) -> dict[str, Any]:
    """Return the storage of a resource as in a file, where it is absent if nothing is known."""
    return {"storage": definition.storage or None} if isinstance(definition, ResourceDefinition) else {}


def _default(field: FieldInfo) -> Any:
    default = field.get_default(call_default_factory=True)
    return default.model_dump() if isinstance(default, BaseModel) else default


def _plain(value: Any) -> Any:
    """Return *value* as YAML can represent it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return *values* with nested mappings flattened: ``bindings.sources``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner_key}": inner for inner_key, inner in value.items()})
        else:
            flat[key] = value
    return flat


def _value_text(value: Any) -> str:
    return "unset" if value is ABSENT else quoted(value)
