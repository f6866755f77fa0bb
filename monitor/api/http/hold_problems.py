"""A hold in an answer, and the errors of holds as problems."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Schema

from monitor.api.http.problems import Refused
from monitor.ledger import holds as holding
from monitor.ledger.holds import AlreadyHeld, HoldError, NotAllowed, NotHeld, RunHeld, UnknownScope
from monitor.models import Hold

KindName = Literal["series", "suite", "site", "reporter"]
_STATUS: dict[type[HoldError], tuple[int, str]] = {
    UnknownScope: (404, "unknown_scope"),
    NotAllowed: (403, "not_allowed"),
    AlreadyHeld: (409, "already_held"),
    NotHeld: (409, "not_held"),
    RunHeld: (409, "held"),
}


class HoldOut(Schema):
    """*left* is the number of claimed or running runs of the scope; it is null once the hold has ended."""

    kind: str
    name: str
    mode: str
    who: str
    why: str
    began_at: datetime
    until: datetime | None
    ended_at: datetime | None
    ended_by: str
    ended_why: str
    left: int | None = None


def refused(error: HoldError) -> Refused:
    """Return *error* as a problem; if a hold is the cause, the problem contains the hold."""
    status, code = _STATUS.get(type(error), (422, "invalid"))
    hold = getattr(error, "hold", None)
    extra: dict[str, Any] = {"hold": HoldOut.from_orm(hold).model_dump(mode="json")} if hold else {}
    return Refused(status, code, str(error), **extra)


def hold_out(hold: Hold, now: datetime) -> HoldOut:
    """Return *hold*; if it is in force at *now*, with the number of claimed or running runs."""
    out = HoldOut.from_orm(hold)
    if hold.ended_at is None and (hold.until is None or hold.until > now):
        out.left = holding.hold_progress([hold])[0].left
    return out
