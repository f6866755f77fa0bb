"""Write alerts that opened and closed, and queue their notifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monitor.models import Alert, Notification
from monitor.models.alert import Event

if TYPE_CHECKING:
    from datetime import datetime

_BATCH = 1000


def write(
    opened: Sequence[Alert],
    closed: Sequence[Alert],
    channels: Mapping[int, Sequence[Mapping[str, Any]]],
    now: datetime,
) -> None:
    """Insert *opened*, update *closed*, and queue a notification of each for the channels of its rule.

    *channels* has the channels of each rule by its primary key; alerts of other rules queue none.
    """
    Alert.objects.bulk_create(opened)
    Alert.objects.bulk_update(closed, ["closed_at", "closed_by", "closed_text"], batch_size=_BATCH)
    events = [*((alert, Event.OPENED) for alert in opened), *((alert, Event.CLOSED) for alert in closed)]
    Notification.objects.bulk_create(
        Notification(alert=alert, event=event, channel=channel, due_at=now)
        for alert, event in events
        for channel in channels.get(alert.rule_id, ())
    )
