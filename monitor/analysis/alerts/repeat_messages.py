"""Tell channels again of alerts that stay open without an acknowledgement, as their rules ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from monitor.models import Alert, Notification
from monitor.models.alert import Event

ChannelKey = tuple[int, str]  # the incident, or else minus the key of the alert; the channel


def repeat_messages(now: datetime) -> None:
    """Queue a message to each channel that was last told of an open alert ``repeat_seconds`` ago.

    A channel gets one message for an incident, of its oldest such alert. Alerts of held incidents wait.
    """
    unseen = Alert.objects.open().filter(
        rule__enabled=True, rule__repeat_seconds__isnull=False, acknowledged_at=None
    )
    alerts = list(unseen.exclude(incident__is_held=True).select_related("rule").order_by("pk"))
    if not alerts:
        return
    sent_at = _last_sent(alerts)
    due: dict[ChannelKey, Notification] = {}
    for alert in alerts:
        before = now - timedelta(seconds=alert.rule.repeat_seconds or 0)
        for channel in alert.rule.notify:
            key = _key(alert.pk, alert.incident_id, channel)
            last = sent_at.get(key)
            if key not in due and last is not None and last <= before:
                due[key] = Notification(alert=alert, event=Event.REPEATED, channel=channel, due_at=now)
    Notification.objects.bulk_create(due.values())


def _last_sent(alerts: Sequence[Alert]) -> dict[ChannelKey, datetime | None]:
    """Return when the last message about the incidents of *alerts* was sent; None: not sent, or not yet."""
    incidents = {alert.incident_id for alert in alerts if alert.incident_id is not None}
    rows = Notification.objects.filter(Q(alert__in=alerts) | Q(alert__incident__in=incidents), withheld="")
    columns = ("alert_id", "alert__incident_id", "channel", "sent_at")
    return {
        _key(alert, incident, channel): sent_at
        for alert, incident, channel, sent_at in rows.order_by("pk").values_list(*columns)
    }


def _key(alert: int, incident: int | None, channel: Any) -> ChannelKey:
    return (-alert if incident is None else incident, json.dumps(channel, sort_keys=True))
