"""Ways to tell people of alerts: one file each, with a class ``Notifier``. The folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

from monitor.alerts.channels.base import InvalidOptions, Notifier, UnknownChannel
from reporters.options import unfit

Fault = tuple[tuple[str, ...], str]  # the key at fault, if it is one, and what is wrong


def names() -> list[str]:
    """The kinds of channels, sorted: every module of this package but the contract."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name != "base")


def load(kind: str) -> type[Notifier]:
    """The class of *kind*. Raises UnknownChannel: it is not in the listing; nothing was imported."""
    known = names()
    if kind not in known:  # checked first: a name from outside must never choose what is imported
        raise UnknownChannel(f"there is no channel {kind!r}; known are {', '.join(known)}")
    notifier: type[Notifier] = importlib.import_module(f"{__name__}.{kind}").Notifier
    return notifier


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
        elif why := unfit({name: value}, types):
            yield (name,), why.removeprefix(f"{name}: ")


def _options(channel: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in channel.items() if name != "kind"}
