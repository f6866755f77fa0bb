"""Alerts as pages list them: each with the state of its notifications."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from monitor.analysis.attribution.attribute import explained, of_series
from monitor.analysis.outcomes.streaks import FailureStreak, streaks
from monitor.models import Alert, Attribution, Notification

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
    """An alert.

    Attributes:
        at_fault: the part of the grid that explains the failures of its series, if one does.
        streak: the consecutive failures of its series now; None of a closed alert.
    """

    alert: Alert
    notifications: Sequence[NotificationState]
    at_fault: Attribution | None
    streak: FailureStreak | None


def listed(alerts: AlertQuerySet, now: datetime) -> list[ListedAlert]:
    """Return *alerts* with their notifications, as of *now*; the number of queries is constant."""
    related = alerts.select_related(
        "rule", "series", "reporter", "opened_by", "closed_by", "incident__signature"
    )
    rows = list(related.prefetch_related("notifications"))
    culprits = _at_fault(rows)
    failing = {each.series.pk: each.series.name for each in rows if each.series and each.closed_at is None}
    found = streaks(failing, now) if failing else {}
    return [
        ListedAlert(
            alert,
            notification_states(alert.notifications.all()),
            culprits.get(alert.pk),
            found.get(alert.series_id) if alert.series_id and alert.closed_at is None else None,
        )
        for alert in rows
    ]


@dataclass(frozen=True)
class SilencePreview:
    """What a silence withholds: messages of *alerts* open alerts, on channels of these *kinds*."""

    alerts: int
    rules: Sequence[str]
    kinds: Sequence[str]


def silence_preview(alerts: AlertQuerySet) -> SilencePreview:
    """Return what a silence of the incident of *alerts* withholds now."""
    rows = alerts.open().order_by().values_list("rule__name", "rule__notify")
    rules = dict(rows)
    kinds = {str(channel["kind"]) for notify in rules.values() for channel in notify}
    return SilencePreview(alerts.open().count(), sorted(rules), sorted(kinds))


def _at_fault(alerts: Collection[Alert]) -> dict[int, Attribution]:
    """Return by key what explains the run that opened an alert, or else the failures of its series now."""
    open_ones = [alert for alert in alerts if alert.closed_at is None]
    by_series = of_series({alert.series_id for alert in open_ones if alert.series_id is not None})
    by_run = explained({alert.opened_by_id for alert in alerts if alert.opened_by_id is not None})
    culprits = {alert.pk: by_series[alert.series_id] for alert in open_ones if alert.series_id in by_series}
    return culprits | {
        alert.pk: by_run[alert.opened_by_id] for alert in alerts if alert.opened_by_id in by_run
    }


def notification_states(notifications: Iterable[Notification]) -> list[NotificationState]:
    """Return *notifications* in words, the oldest first."""
    return [_state(row) for row in sorted(notifications, key=attrgetter("pk"))]


def _state(notification: Notification) -> NotificationState:
    is_late = notification.sent_at is None and bool(notification.error)
    words = _words(notification)
    return NotificationState(notification.kind, notification.event, words, is_late, notification.error)


def _words(notification: Notification) -> str:
    if notification.sent_at is not None:
        return "notified"
    if notification.withheld:
        return f"not sent: {notification.withheld}"
    if notification.is_given_up:
        return "not delivered"
    return f"{notification.attempts} failed attempts, retrying" if notification.error else "pending"
