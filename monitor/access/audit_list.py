"""The audit record as a table: the events that a filter selects, and the same as CSV."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.csvfile import to_csv
from monitor.models import AuditEvent
from monitor.models.audit_event import AuditChannel, AuditOutcome

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.audit_event import AuditEventQuerySet

MOST_ROWS = 10_000  # of a file
_COLUMNS = (
    *("at", "last_at", "repeats", "outcome", "channel", "user", "token", "address"),
    *("action", "target", "status", "changes"),
)


@dataclass(frozen=True)
class AuditFilter:
    """What the table shows; an empty text selects everything.

    Attributes:
        user: the name of the user.
        action: a part of the action.
        subject: the name of an object that was changed, or a part of the path of the request.
        start, end: from *start* (None: the first event) until before *end*.
    """

    end: datetime
    start: datetime | None = None
    user: str = ""
    action: str = ""
    subject: str = ""
    outcome: str = ""
    channel: str = ""


def audit_events(chosen: AuditFilter, user: AbstractBaseUser | AnonymousUser) -> AuditEventQuerySet:
    """Return the events that *chosen* selects and *user* may see, newest first."""
    events = AuditEvent.objects.visible_to(user).filter(last_at__lt=chosen.end).order_by("-pk")
    if chosen.start is not None:
        events = events.filter(last_at__gte=chosen.start)
    if chosen.user:
        events = events.filter(user=chosen.user)
    if chosen.action:
        events = events.filter(action__icontains=chosen.action)
    if chosen.subject:
        is_changed = Q(changes__contains=[{"name": chosen.subject}])
        events = events.filter(is_changed | Q(target__icontains=chosen.subject))
    if chosen.outcome in AuditOutcome.values:
        events = events.filter(outcome=chosen.outcome)
    if chosen.channel in AuditChannel.values:
        events = events.filter(channel=chosen.channel)
    return events


def audit_csv(events: AuditEventQuerySet) -> str:
    """Return the newest ``MOST_ROWS`` of *events* as CSV text with a header; times are UTC."""
    rows = (
        [at.isoformat(), last_at.isoformat(), *others, json.dumps(changes)]
        for at, last_at, *others, changes in events.values_list(*_COLUMNS)[:MOST_ROWS]
    )
    return to_csv([_COLUMNS, *rows])
