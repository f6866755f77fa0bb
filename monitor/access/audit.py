"""The audit record (docs/access.md): one event for a request or command that changes something or is denied.

The middleware of pages and API, and ``manage.py``, write the events.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import Error

from monitor.access.audit_trail import Trail
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


def write(
    actor: Actor,
    action: Action,
    now: datetime,
    changes: Trail | None = None,
    *,
    at: datetime | None = None,
    repeats: int = 1,
) -> AuditEvent | None:
    """Write the event; if the database refuses it, log it as an error and return None.

    *repeats* attempts between *at* and *now* are one event.
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
    try:
        event.save(force_insert=True)
    except Error as error:
        reason = str(error).partition("\n")[0]
        logger.error("not in the audit record: %s %s: %s", event, event.target, reason)
        return None
    return event


def _text(value: str, characters: int) -> str:
    """Return the beginning of *value* that the database can store."""
    return value.replace("\x00", "").encode(errors="replace").decode()[:characters]
