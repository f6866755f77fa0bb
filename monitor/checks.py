"""System checks of the settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register


@register()
def lease_outlives_heartbeats(**_: Any) -> list[CheckMessage]:
    if settings.GRIDCAST_LEASE_SECONDS >= 3 * settings.GRIDCAST_HEARTBEAT_SECONDS:
        return []
    return [Error("GRIDCAST_LEASE_SECONDS must be at least three heartbeats long.", id="monitor.E001")]


@register(deploy=True)
def not_in_debug(**_: Any) -> list[CheckMessage]:
    if not settings.DEBUG:
        return []
    return [Warning("GRIDCAST_DEBUG shows tracebacks to every visitor.", id="monitor.W001")]
