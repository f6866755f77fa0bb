"""The audit record as a table: the events that a filter selects, and the same as CSV."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.core.csvfile import to_csv
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.selected_time import SelectedTime

if TYPE_CHECKING:
    from monitor.models.audit_event import AuditEventQuerySet

MOST_ROWS = 10_000  # of a file
_COLUMNS = (
    *("at", "last_at", "repeats", "outcome", "channel", "user", "token", "address"),
    *("action", "target", "status", "changes"),
)


@dataclass(frozen=True, kw_only=True)
class AuditFilter(SelectedTime):
    """The events to show; an empty text selects everything.

    Attributes:
        user: the name of the user.
        token: the first characters of the token.
        action: a part of the action.
        subject: the name of an object that was changed or that the request or command names; with a slash,
            a part of the path of the request.
    """

    user: str = ""
    token: str = ""
    action: str = ""
    subject: str = ""
    outcome: str = ""
    channel: str = ""


def selected_events(chosen: AuditFilter, events: AuditEventQuerySet) -> AuditEventQuerySet:
    """Return those of *events* that *chosen* selects, newest first."""
    events = chosen.within(events, "last_at").order_by("-pk")
    if chosen.user:
        events = events.filter(user=chosen.user)
    if chosen.token:
        events = events.filter(token=chosen.token)
    if chosen.action:
        events = events.filter(action__icontains=chosen.action)
    if chosen.subject:
        events = events.filter(_is_about(chosen.subject))
    if chosen.outcome in AuditOutcome.values:
        events = events.filter(outcome=chosen.outcome)
    if chosen.channel in AuditChannel.values:
        events = events.filter(channel=chosen.channel)
    return events


def _is_about(subject: str) -> Q:
    """Return the condition that an event changed *subject*, or that its request or command names it."""
    if "/" in subject:
        return Q(target__icontains=subject) | Q(changes__contains=[{"name": subject}])
    word = rf"(^|[ /:=]){re.escape(subject)}($|[ /?])"
    return Q(changes__contains=[{"name": subject}]) | Q(target__iregex=word)


def audit_csv(events: AuditEventQuerySet) -> str:
    """Return the newest ``MOST_ROWS`` of *events* as CSV text with a header; times are UTC."""
    rows = (
        [at.isoformat(), last_at.isoformat(), *others, json.dumps(changes)]
        for at, last_at, *others, changes in events.values_list(*_COLUMNS)[:MOST_ROWS]
    )
    return to_csv([_COLUMNS, *rows])
