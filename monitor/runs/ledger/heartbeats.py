"""Heartbeats of the service's components: the scheduler and the reporters."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.core.db import binary
from monitor.models import Heartbeat

SCHEDULER = "beat"
HOME_REPORTER = "reporter.home"
SILENT_AFTER = timedelta(seconds=20)
_RECORD = """
INSERT INTO monitor_heartbeat AS last (name, seen_at, back_at) VALUES (%b, %b, %b)
ON CONFLICT (name) DO UPDATE SET seen_at = EXCLUDED.seen_at,
    back_at = CASE WHEN last.seen_at > %b THEN last.back_at ELSE EXCLUDED.back_at END
"""


def record(component: str, now: datetime) -> None:
    """Record a heartbeat of *component*."""
    with binary.cursor() as cursor:
        cursor.execute(_RECORD, [component, now, now, now - SILENT_AFTER])


def back_at(component: str) -> datetime | None:
    """Return when the last silence of *component* ended: None if it has never sent a heartbeat."""
    return Heartbeat.objects.filter(name=component).values_list("back_at", flat=True).first()


def was_silent(component: str, now: datetime) -> bool:
    """Return whether *component* has sent no heartbeat for ``SILENT_AFTER``, or no heartbeat at all."""
    return not Heartbeat.objects.filter(name=component, seen_at__gt=now - SILENT_AFTER).exists()


def silent_components(now: datetime) -> set[str]:
    """Return the names of the components whose last heartbeat is at least ``SILENT_AFTER`` old."""
    return set(Heartbeat.objects.filter(seen_at__lte=now - SILENT_AFTER).values_list("name", flat=True))
