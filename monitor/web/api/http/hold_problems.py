"""A hold in an answer, and the errors of holds as problems."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema

from monitor.models import Hold
from monitor.models.hold import HoldKind, HoldMode
from monitor.runs.ledger import holds as holding
from monitor.runs.ledger.holds import AlreadyHeld, HoldError, NotAllowed, NotHeld, RunHeld, UnknownScope
from monitor.web.api.http.problems import Refused

_STATUS: dict[type[HoldError], tuple[int, str]] = {
    UnknownScope: (404, "unknown_scope"),
    NotAllowed: (403, "not_allowed"),
    AlreadyHeld: (409, "already_held"),
    NotHeld: (409, "not_held"),
    RunHeld: (409, "held"),
}


class HoldOut(Schema):
    """A hold of a series, suite, site or reporter; *ended_at* is null while no user has ended it.

    *suspended* is why it is not in force although it has not ended: the identity of its author is suspended.
    *runs_left* is the number of claimed or running runs of the scope; it is null once the hold has ended.
    """

    id: int
    kind: HoldKind
    name: str
    mode: HoldMode
    began_at: datetime
    began_by: str
    reason: str
    until: datetime | None
    ended_at: datetime | None
    ended_by: str
    end_reason: str
    suspended: str
    runs_left: int | None


def refused(error: HoldError) -> Refused:
    """Return *error* as a problem; if a hold is the cause, the problem contains the hold."""
    status, code = _STATUS.get(type(error), (422, "invalid"))
    hold = getattr(error, "hold", None)
    extra: dict[str, Any] = {"hold": _shown(hold, None).model_dump(mode="json")} if hold else {}
    return Refused(status, code, str(error), **extra)


def hold_out(hold: Hold, now: datetime) -> HoldOut:
    """Return *hold*; if it is in force at *now*, with the number of claimed or running runs."""
    is_in_force = (
        hold.ended_at is None and (hold.until is None or hold.until > now) and not _suspension(hold, now)
    )
    return _shown(hold, holding.hold_progress([hold])[0].left if is_in_force else None, now)


def _suspension(hold: Hold, now: datetime | None) -> str:
    identity = hold.identity
    if hold.ended_at is not None or identity is None or now is None:
        return ""
    return identity.suspension(now)


def _shown(hold: Hold, runs_left: int | None, now: datetime | None = None) -> HoldOut:
    return HoldOut(
        kind=HoldKind(hold.kind),
        mode=HoldMode(hold.mode),
        began_by=hold.who,
        reason=hold.why,
        end_reason=hold.ended_why,
        suspended=_suspension(hold, now),
        runs_left=runs_left,
        **{name: getattr(hold, name) for name in ("id", "name", "began_at", "until", "ended_at", "ended_by")},
    )
