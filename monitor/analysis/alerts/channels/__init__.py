"""Channels of alerts: one file each, with a class ``Notifier``. The folder is the registry.

The service uses the environment variables that a channel names with its own rights: ``foreign_secrets`` says
which of them are not those of the user who names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from monitor.analysis.alerts.channels.base import VARIABLE, InvalidOptions, Notifier, UnknownChannel
from monitor.analysis.webhooks.secret_owners import why_foreign
from monitor.models.alert import CHANGE_RULES
from reporters.options import invalid_option
from reporters.registry import PluginRegistry

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    User = AbstractBaseUser | AnonymousUser

ChannelFault = tuple[tuple[str, ...], str]  # the path of the invalid key (empty: the whole), a message

_registry = PluginRegistry[type[Notifier]](
    __name__, __path__, "Notifier", noun="channel", error=UnknownChannel, shared={"base"}
)
names, load = _registry.names, _registry.load


def notifier(channel: Mapping[str, Any]) -> Notifier:
    """Create the notifier of *channel*: ``{"kind": ..., option: value}``.

    Raises:
        UnknownChannel, InvalidOptions: the message says what is wrong.
    """
    for path, message in faults(channel):
        raise InvalidOptions(": ".join((*path, message)))
    return load(channel["kind"])(_options(channel))


def faults(channel: Any) -> Iterator[ChannelFault]:
    """Yield the faults of *channel*. Nothing is connected, and no environment variable is read."""
    if not isinstance(channel, Mapping) or not isinstance(channel.get("kind"), str):
        yield (), 'expected a channel, such as {"kind": "log"}'
        return
    try:
        plug_in = load(channel["kind"])
    except UnknownChannel as error:
        yield ("kind",), str(error)
        return
    option_faults = list(_option_faults(channel, plug_in))
    yield from option_faults
    if not option_faults:
        try:
            plug_in(_options(channel))
        except InvalidOptions as error:
            yield ((error.option,) if error.option else ()), error.message


def foreign_secrets(channel: Mapping[str, Any], user: User) -> Iterator[ChannelFault]:
    """Yield a fault for each variable of *channel* whose secret does not belong to *user* now."""
    for name, value in _options(channel).items():
        if name.endswith(VARIABLE) and value and (why := why_foreign(str(value), user, CHANGE_RULES)):
            yield (name,), why


def _option_faults(channel: Mapping[str, Any], plug_in: type[Notifier]) -> Iterator[ChannelFault]:
    types, options = plug_in.option_types, _options(channel)
    for name, value in options.items():
        if name not in types:
            valid = ", ".join(sorted(types)) or "none"
            yield (name,), f"{channel['kind']} has no option {name!r}; its options are {valid}"
        elif why := invalid_option({name: value}, types):
            yield (name,), why.removeprefix(f"{name}: ")


def _options(channel: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in channel.items() if name != "kind"}
