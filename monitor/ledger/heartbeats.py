"""Heartbeats of the service's components: the scheduler and the reporters."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.models import Heartbeat

SCHEDULER = "beat"
HOME_REPORTER = "reporter.home"
SILENT_AFTER = timedelta(seconds=20)


def record(component: str, now: datetime) -> None:
    """Record a heartbeat of *component*."""
    beat = Heartbeat(name=component, seen_at=now)
    Heartbeat.objects.bulk_create(
        [beat], update_conflicts=True, unique_fields=["name"], update_fields=["seen_at"]
    )


def was_silent(component: str, now: datetime) -> bool:
    """Return whether *component* has sent no heartbeat for ``SILENT_AFTER``, or no heartbeat at all."""
    return not Heartbeat.objects.filter(name=component, seen_at__gt=now - SILENT_AFTER).exists()


def silent_components(now: datetime) -> set[str]:
    """Return the names of the components whose last heartbeat is at least ``SILENT_AFTER`` old."""
    return set(Heartbeat.objects.filter(seen_at__lte=now - SILENT_AFTER).values_list("name", flat=True))
