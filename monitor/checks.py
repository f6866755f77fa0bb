"""System checks of the settings; commands run only those with this tag."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

SETTINGS = "settings"
WIDE_PREFIX = {4: 16, 6: 48}  # the lengths of prefixes below which strangers may be in a network


@register(SETTINGS)
def lease_outlives_heartbeats(**_: Any) -> list[CheckMessage]:
    if settings.GRIDCAST_LEASE_SECONDS >= 3 * settings.GRIDCAST_HEARTBEAT_SECONDS:
        return []
    return [Error("GRIDCAST_LEASE_SECONDS must be at least three heartbeats long.", id="monitor.E001")]


@register(SETTINGS)
def traces_have_an_exporter(**_: Any) -> list[CheckMessage]:
    if not settings.GRIDCAST_OTLP_ENDPOINT or find_spec("opentelemetry.exporter.otlp.proto.http"):
        return []
    message = (
        "GRIDCAST_OTLP_ENDPOINT is set, and the exporter is not installed: pip install 'gridcast[otlp]'."
    )
    return [Error(message, id="monitor.E002")]


@register(deploy=True)
def not_in_debug(**_: Any) -> list[CheckMessage]:
    if not settings.DEBUG:
        return []
    return [Warning("GRIDCAST_DEBUG shows tracebacks to every visitor.", id="monitor.W001")]


@register(deploy=True)
def proxies_are_few(**_: Any) -> list[CheckMessage]:
    networks = settings.GRIDCAST_PROXIES.networks
    wide = [str(network) for network in networks if network.prefixlen < WIDE_PREFIX[network.version]]
    if not wide:
        return []
    message = f"GRIDCAST_PROXIES: any host of {', '.join(wide)} can send requests in the name of any address."
    return [Warning(message, hint="Name the addresses of the proxies.", id="monitor.W002")]
