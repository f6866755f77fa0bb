"""Acknowledge an alert; the acknowledgement of an incident includes those of its alerts."""

from __future__ import annotations

from datetime import datetime

from monitor.depot.access.audit_trail import note
from monitor.models import Alert


def acknowledge(alert: Alert, user: str, now: datetime) -> bool:
    """Mark *alert* as acknowledged by *user*; return False if it is resolved or acknowledged already."""
    is_first = Alert.objects.filter(pk=alert.pk).acknowledge(user, now) > 0
    if is_first:
        note("alert", str(alert), before="open", after=f"acknowledged by {user}")
    return is_first
