"""Ways to tell people of alerts: one file each, with a class ``Notifier``. The folder is the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from monitor.alerts.channels.base import InvalidOptions, Notifier, UnknownChannel
from reporters.options import invalid_option
from reporters.registry import PluginRegistry

Fault = tuple[tuple[str, ...], str]  # the key at fault, if it is one, and what is wrong

_registry = PluginRegistry[type[Notifier]](
    __name__, __path__, "Notifier", noun="channel", error=UnknownChannel, shared={"base"}
)
names, load = _registry.names, _registry.load


def made(channel: Mapping[str, Any]) -> Notifier:
    """The notifier that *channel*, ``{"kind": ..., option: value}``, names.

    Raises:
        UnknownChannel, InvalidOptions: with what is wrong.
    """
    for path, message in faults(channel):
        raise InvalidOptions(": ".join((*path, message)))
    return load(channel["kind"])(_options(channel))


def faults(channel: Any) -> Iterator[Fault]:
    """What is wrong with *channel*, by its key. Nothing is connected, and no environment is asked."""
    if not isinstance(channel, Mapping) or not isinstance(channel.get("kind"), str):
        yield (), 'expected a channel, such as {"kind": "log"}'
        return
    try:
        notifier = load(channel["kind"])
    except UnknownChannel as error:
        yield ("kind",), str(error)
        return
    found = list(_option_faults(channel, notifier))
    yield from found
    if not found:
        try:
            notifier(_options(channel))
        except InvalidOptions as error:
            yield ((error.option,) if error.option else ()), error.message


def _option_faults(channel: Mapping[str, Any], notifier: type[Notifier]) -> Iterator[Fault]:
    types, options = notifier.option_types, _options(channel)
    for name, value in options.items():
        if name not in types:
            known = ", ".join(sorted(types)) or "none"
            yield (name,), f"{channel['kind']} has no option {name!r}; known are {known}"
        elif why := invalid_option({name: value}, types):
            yield (name,), why.removeprefix(f"{name}: ")


def _options(channel: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in channel.items() if name != "kind"}
