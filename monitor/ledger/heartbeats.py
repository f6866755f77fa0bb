"""Heartbeats of the service's components: beat, the home reporter."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.models import Heartbeat

SILENT_AFTER = timedelta(seconds=20)


def record(name: str, now: datetime) -> None:
    """Record a heartbeat of a component."""
    Heartbeat.objects.update_or_create(name=name, defaults={"seen_at": now})


def was_silent(name: str, now: datetime) -> bool:
    """Whether a component has sent no heartbeat for ``SILENT_AFTER``, or none at all."""
    return not Heartbeat.objects.filter(name=name, seen_at__gt=now - SILENT_AFTER).exists()


def silent_components(now: datetime) -> set[str]:
    """Return the components that have sent heartbeats, but none for ``SILENT_AFTER``."""
    return set(Heartbeat.objects.filter(seen_at__lte=now - SILENT_AFTER).values_list("name", flat=True))
