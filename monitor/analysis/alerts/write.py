"""Write alerts that opened and closed, and queue their notifications."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from monitor.models import Alert, Notification
from monitor.models.alert import Event

if TYPE_CHECKING:
    from datetime import datetime

GROUP_WAIT = timedelta(minutes=1)  # an opened alert is announced when it has an incident, or after this time
UNSEEN = "the author of its rule may not see it any more"
_BATCH = 1000


def write(
    opened: Sequence[Alert],
    closed: Sequence[Alert],
    channels: Mapping[int, Sequence[Mapping[str, Any]]],
    now: datetime,
    unseen: Collection[int] = (),
) -> None:
    """Update *closed*, insert *opened*, and queue a notification of each for the channels of its rule.

    *channels* has the channels of each rule by its primary key; alerts of other rules queue none. The message
    that an alert opened waits until the alert is grouped (``monitor.analysis.alerts.group``), at most
    ``GROUP_WAIT``. *unseen* are the keys of closed alerts that the author of their rule may not see any more:
    their messages are withheld, those that wait included.
    """
    Alert.objects.bulk_update(closed, ["closed_at", "closed_by", "closed_text"], batch_size=_BATCH)
    Alert.objects.bulk_create(opened)
    events = [
        *((alert, Event.CLOSED, now) for alert in closed if alert.pk not in unseen),
        *((alert, Event.OPENED, now + GROUP_WAIT) for alert in opened),
    ]
    Notification.objects.bulk_create(
        Notification(alert=alert, event=event, channel=channel, due_at=due_at)
        for alert, event, due_at in events
        for channel in channels.get(alert.rule_id, ())
    )
    if unseen:
        Notification.objects.filter(alert__in=unseen).withhold(UNSEEN)
