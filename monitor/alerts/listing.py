"""Alerts as pages list them: each with the state of its notifications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from monitor.models import Alert, Notification

if TYPE_CHECKING:
    from monitor.models.alert import AlertQuerySet


@dataclass(frozen=True)
class NotificationState:
    """A notification in words; *is_late* means that an attempt has failed and no attempt has succeeded."""

    kind: str
    event: str
    words: str
    is_late: bool
    error: str


@dataclass(frozen=True)
class ListedAlert:
    alert: Alert
    notifications: Sequence[NotificationState]


def listed(alerts: AlertQuerySet) -> list[ListedAlert]:
    """Return *alerts* with their notifications; the number of queries is constant."""
    related = alerts.select_related("rule", "series", "reporter", "opened_by", "closed_by")
    rows = related.prefetch_related("notifications")
    return [
        ListedAlert(alert, [_state(row) for row in sorted(alert.notifications.all(), key=attrgetter("pk"))])
        for alert in rows
    ]


def _state(notification: Notification) -> NotificationState:
    is_late = notification.sent_at is None and bool(notification.error)
    words = _words(notification)
    return NotificationState(notification.kind, notification.event, words, is_late, notification.error)


def _words(notification: Notification) -> str:
    if notification.sent_at is not None:
        return "notified"
    if notification.is_given_up:
        return "not delivered"
    return f"{notification.attempts} failed attempts, retrying" if notification.error else "pending"
