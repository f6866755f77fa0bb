"""Suspend and resume what acts on behalf of an author, with an event of the service in the audit record."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from monitor.depot.access import audit
from monitor.depot.access.audit import Action, Actor
from monitor.depot.access.audit_trail import audit_trail, note
from monitor.models.audit_event import AuditChannel, AuditOutcome

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models.author import Authored, AuthorRights

logger = logging.getLogger(__name__)


def suspend(row: Authored, reason: str, now: datetime) -> None:
    """Store that *row* is suspended for *reason*, empty: resumed; without a difference, do nothing."""
    if row.suspended == reason:
        return
    kind, verb = str(row._meta.verbose_name), "suspended" if reason else "resumed"  # noqa: SLF001  # Django's API
    logger.warning("%s %s is %s%s", kind, row, verb, f": {reason}" if reason else "")
    with audit_trail() as changes:
        note(kind, str(row), before=row.suspended or "in force", after=reason or "in force")
    action = Action(AuditChannel.SERVICE, f"{kind} {verb}", str(row), AuditOutcome.DONE, 0)
    audit.record(Actor(), action, now, changes)
    row.suspended = reason
    row.save(update_fields=["suspended"])


def lost_right(row: Authored, author: AuthorRights | None) -> str:
    """Return in words why *author*, None: deleted, does not keep *row* in force."""
    if author is None:
        return f"its author, {row.author_name}, or the identity by which it was saved, was deleted"
    if not author.is_admitted and row.identity_id is None:
        return f"the account of its author, {row.author_name}, is disabled, or has no role granted here"
    if not author.is_admitted:
        return f"the account of its author, {row.author_name}, is disabled or suspended"
    return f"the roles of its author, {row.author_name}, do not permit it"
