"""The audit record (docs/access.md): one event for a request or command that changes something or is denied.

The middleware of pages and API, and ``manage.py``, write the events: that of a change in the transaction that
makes it, that of a denial or failure in one of its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import Error, transaction

from monitor.depot.access.audit_trail import Trail
from monitor.models import AuditEvent

if TYPE_CHECKING:
    from datetime import datetime

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Actor:
    """The user, and by which token or session from which address."""

    user: str = ""
    token: str = ""
    session: str = ""
    address: str = ""


@dataclass(frozen=True)
class Action:
    """What was done or denied: the fields of ``AuditEvent`` of these names."""

    channel: str
    action: str
    target: str
    outcome: str
    status: int


def record(
    actor: Actor,
    action: Action,
    now: datetime,
    changes: Trail | None = None,
    *,
    at: datetime | None = None,
    repeats: int = 1,
) -> AuditEvent:
    """Insert the event in the caller's transaction; *repeats* attempts between *at* and *now* are one event.

    Raises:
        Error: the database refuses it. The caller must not commit the change.
    """
    event = AuditEvent(
        at=at or now,
        last_at=now,
        repeats=repeats,
        outcome=action.outcome,
        channel=action.channel,
        user=_text(actor.user, 200),
        token=actor.token,
        session=actor.session,
        address=actor.address[:45],
        action=_text(action.action, 200),
        target=_text(action.target, 500),
        status=action.status,
        changes=changes.as_json() if changes else [],
    )
    event.save(force_insert=True)
    return event


def write(actor: Actor, action: Action, now: datetime, **options: Any) -> AuditEvent | None:
    """Write an event without a change, as ``record``; if the database refuses it, log it and return None."""
    try:
        with transaction.atomic():
            return record(actor, action, now, **options)
    except Error as error:
        reason = str(error).partition("\n")[0]
        event = f"{actor.user or 'anonymous'}: {action.action} {action.outcome} {action.target}"
        logger.error("not in the audit record: %s: %s", event, reason)
        return None


def _text(value: str, characters: int) -> str:
    """Return the beginning of *value* that the database can store."""
    return value.replace("\x00", "").encode(errors="replace").decode()[:characters]
