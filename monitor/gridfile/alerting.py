"""What a grid file says of alert rules, and what takes more than one value to see that it is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from monitor.alerts import channels
from monitor.gridfile.definition import AlertDefinition
from monitor.gridfile.format import AlertRuleEntry, ChannelEntry, Watches
from monitor.gridfile.problems import Path, nearest, shown
from monitor.models.alert import WATCHED


def definition(name: str, rule: AlertRuleEntry) -> AlertDefinition:
    ((condition, threshold),) = rule.conditions.items()
    return AlertDefinition(
        name,
        title=rule.title,
        enabled=rule.enabled,
        watches=_watched(rule.watches),
        condition=condition,
        threshold=threshold,
        notify=tuple(channel.model_dump() for channel in rule.notify),
    )


def faults(rule: AlertRuleEntry, known: Mapping[str, Collection[str] | None]) -> Iterator[tuple[Path, str]]:
    """Each fault, by its path in the rule; *known* are the names of suites, sites and series, None where they
    are not known."""
    yield from _watch_faults(rule.watches, known)
    for i, channel in enumerate(rule.notify):
        for path, message in _channel_faults(channel):
            yield ("notify", i, *path), message


def _watched(watches: Watches) -> dict[str, Any]:
    """Without what it does not name, every list in order."""
    everything = {"everything": True} if watches.everything else {}
    named = {noun: tuple(sorted(set(getattr(watches, noun)))) for noun in WATCHED}
    return {**everything, **{noun: names for noun, names in named.items() if names}}


def _watch_faults(
    watches: Watches, known: Mapping[str, Collection[str] | None]
) -> Iterator[tuple[Path, str]]:
    for noun, one in WATCHED.items():
        names = known[noun]
        for i, name in enumerate(getattr(watches, noun)):
            if names is not None and name not in names:
                yield ("watches", noun, i), f"there is no {one} {shown(name)}{nearest(name, names)}"


def _channel_faults(channel: ChannelEntry) -> Iterator[tuple[Path, str]]:
    kinds = channels.names()
    if channel.kind not in kinds:
        yield ("kind",), f"there is no channel {shown(channel.kind)}{nearest(channel.kind, kinds)}"
        return
    types = channels.load(channel.kind).option_types
    for path, message in channels.faults(channel.model_dump()):
        if path and path[0] not in types:
            said = f"channel {shown(channel.kind)} has no option {shown(path[0])}{nearest(path[0], types)}"
            yield path, said
        else:
            yield path, message
