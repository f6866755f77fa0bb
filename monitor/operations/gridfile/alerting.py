"""Alert rules of a grid file: their definitions, and the checks that need more than one value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from monitor.analysis.alerts import channels
from monitor.core.yamlfile.problems import Fault, quoted, suggestion
from monitor.models.alert import WATCHED
from monitor.operations.gridfile.alert_entries import AlertRuleEntry, ChannelEntry, Watches
from monitor.operations.gridfile.definition import AlertDefinition

NAMED = {**WATCHED, "probes": "probe"}  # what a rule can name: plural, singular


def rule_definition(name: str, rule: AlertRuleEntry) -> AlertDefinition:
    ((condition, threshold),) = rule.conditions.items()
    return AlertDefinition(
        name,
        title=rule.title,
        enabled=rule.enabled,
        severity=rule.severity,
        repeat_seconds=rule.repeat_seconds,
        watches=_named_watches(rule.watches),
        condition=condition,
        threshold=threshold,
        notify=tuple(channel.model_dump() for channel in rule.notify),
    )


def faults(rule: AlertRuleEntry, names: Mapping[str, Collection[str] | None]) -> Iterator[Fault]:
    """Yield each fault, with its path in the rule.

    *names* has the existing names by key of ``watches``; None instead of
    names disables the check.
    """
    yield from _watch_faults(rule.watches, names)
    for i, channel in enumerate(rule.notify):
        for path, message in _channel_faults(channel):
            yield ("notify", i, *path), message


def _named_watches(watches: Watches) -> dict[str, Any]:
    """Return the entries of *watches* that are not empty, with sorted names."""
    everything = {"everything": True} if watches.everything else {}
    named = {noun: tuple(sorted(set(getattr(watches, noun)))) for noun in NAMED}
    return {**everything, **{noun: names for noun, names in named.items() if names}}


def _watch_faults(watches: Watches, names: Mapping[str, Collection[str] | None]) -> Iterator[Fault]:
    for noun, singular in NAMED.items():
        existing = names[noun]
        for i, name in enumerate(getattr(watches, noun)):
            if existing is not None and name not in existing:
                message = f"there is no {singular} {quoted(name)}{suggestion(name, existing)}"
                yield ("watches", noun, i), message


def _channel_faults(channel: ChannelEntry) -> Iterator[Fault]:
    kinds = channels.names()
    if channel.kind not in kinds:
        yield ("kind",), f"there is no channel {quoted(channel.kind)}{suggestion(channel.kind, kinds)}"
        return
    types = channels.load(channel.kind).option_types
    for path, message in channels.faults(channel.model_dump()):
        if path and path[0] not in types:
            unknown = f"channel {quoted(channel.kind)} has no option {quoted(path[0])}"
            yield path, f"{unknown}{suggestion(path[0], types)}"
        else:
            yield path, message
