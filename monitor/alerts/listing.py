"""What people see of alerts: what is open, and what has been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.models import Alert, Notification

if TYPE_CHECKING:
    from collections.abc import Iterable

    from monitor.models.alert import AlertQuerySet


@dataclass(frozen=True)
class Told:
    """Who was told that an alert was opened or closed: *is_late* where it was tried in vain."""

    kind: str
    event: str
    words: str
    is_late: bool
    error: str


@dataclass(frozen=True)
class Listed:
    """An alert, and who was told of it."""

    alert: Alert
    told: Sequence[Told]


def listed(alerts: AlertQuerySet) -> list[Listed]:
    """*alerts* with what a list shows of them; the number of queries does not depend on how many they are."""
    found = list(
        alerts.select_related("rule", "series", "opened_by", "closed_by").prefetch_related("notifications")
    )
    return [Listed(one, _told(one.notifications.all())) for one in found]


def _told(notifications: Iterable[Notification]) -> list[Told]:
    return [
        Told(one.kind, one.event, _words(one), one.sent_at is None and bool(one.error), one.error)
        for one in sorted(notifications, key=lambda one: one.pk)
    ]


def _words(one: Notification) -> str:
    if one.sent_at is not None:
        return "told"
    if one.is_given_up:
        return "could not be told"
    return f"could not be told {one.attempts} times; it is tried again" if one.error else "is told soon"
