"""System checks of the settings; commands run only those with this tag."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from monitor import env
from monitor.web import environment

SETTINGS = "settings"


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
def proxies_are_named(**_: Any) -> list[CheckMessage]:
    if not settings.SECURE_PROXY_SSL_HEADER or env.proxies() != env.Proxies((), False):
        return []
    message = (
        "GRIDCAST_TLS is 1 and GRIDCAST_PROXIES is empty: all users connect from the address of the proxy,"
        f" which may have {environment.connections_per_address()} connections in a web process."
    )
    hint = "Name the proxy: GRIDCAST_PROXIES=127.0.0.1,::1 for one on this host."
    return [Warning(message, hint=hint, id="monitor.W002")]
