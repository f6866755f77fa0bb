"""Tell channels again of alerts that stay open without an acknowledgement, as their rules ask."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from monitor.models import Alert, Notification
from monitor.models.alert import Event


def repeat_messages(now: datetime) -> None:
    """Queue a message to each channel that was last told of an open alert ``repeat_seconds`` ago.

    A channel gets one message for an incident, of its oldest such alert. Alerts of held incidents wait.
    """
    alerts = Alert.objects.open().filter(
        rule__enabled=True, rule__repeat_seconds__isnull=False, acknowledged_at=None
    )
    told: set[tuple[object, str]] = set()
    rows = alerts.exclude(incident__is_held=True).select_related("rule").order_by("pk")
    for alert in rows:
        for channel in alert.rule.notify:
            key = (alert.incident_id or -alert.pk, json.dumps(channel, sort_keys=True))
            if key not in told and _is_due(alert, channel, now):
                Notification.objects.create(alert=alert, event=Event.REPEATED, channel=channel, due_at=now)
            told.add(key)


def _is_due(alert: Alert, channel: object, now: datetime) -> bool:
    """Return whether the last message about the incident of *alert* on *channel* was sent long enough ago."""
    of_same = Notification.objects.filter(channel=channel, withheld="")
    if alert.incident_id is None:
        of_same = of_same.filter(alert=alert)
    else:
        of_same = of_same.filter(alert__incident=alert.incident_id)
    latest = of_same.order_by("-pk").first()
    if latest is None or latest.due_at is not None or latest.sent_at is None:
        return False
    return latest.sent_at <= now - timedelta(seconds=alert.rule.repeat_seconds or 0)
