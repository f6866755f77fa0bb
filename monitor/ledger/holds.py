"""Pause, drain and resume a series, a suite, a site or a reporter; who did it, and why, is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.ledger import transitions
from monitor.models import Hold, Reporter, Run, Series, Site, Suite
from monitor.models.hold import MAX_REASON_CHARACTERS, SCOPE_LOOKUPS, HoldKind, HoldMode, Scope
from monitor.models.run import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

TIME_WAS_OVER = "its time was over"
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # what PostgreSQL holds Python may not be able to read
_NOUNS: dict[str, QuerySet[Any]] = {
    HoldKind.SERIES: Series.objects.all(),
    HoldKind.SUITE: Suite.objects.all(),
    HoldKind.SITE: Site.objects.all(),
    HoldKind.REPORTER: Reporter.objects.all(),
}


class HoldError(Exception):
    """It is not done; says why.

    UnknownScope    there is nothing of that name, for the one who asks
    NotAllowed      it concerns series of others
    InvalidOrder    no reason, too long a one, or a time that is past, or too far away
    AlreadyHeld     somebody was first: ``hold``
    NotHeld         there is nothing to resume
    Held            nothing of it begins now: ``hold``
    """


class UnknownScope(HoldError):
    pass


class NotAllowed(HoldError):
    pass


class InvalidRequest(HoldError):
    pass


class NotHeld(HoldError):
    pass


class AlreadyHeld(HoldError):
    def __init__(self, hold: Hold) -> None:
        super().__init__(f"the {hold.scope} is held already: {describe_hold(hold)}")
        self.hold = hold


class RunHeld(HoldError):
    def __init__(self, series: str, hold: Hold) -> None:
        super().__init__(f"nothing of {series} begins now: the {hold.scope} is {describe_hold(hold)}")
        self.hold = hold


@dataclass(frozen=True)
class HoldProgress:
    """A hold that is in force, and how many runs of what it covers are claimed or running."""

    hold: Hold
    left: int

    @property
    def words(self) -> str:
        if self.hold.mode == HoldMode.DRAIN:
            return f"draining, {self.left} left" if self.left else "drained"
        return f"paused, {self.left} still to end" if self.left else "paused"


def find_scope(kind: str, name: str, user: AbstractBaseUser | AnonymousUser | None = None) -> Scope:
    """What *user* means; without one it is somebody at the command line, who may do everything.

    Raises:
        UnknownScope: there is no such thing, or nothing of it that *user* may see.
    """
    if kind not in HoldKind.values:
        raise UnknownScope(f"expected one of {', '.join(HoldKind.values)}, got {kind!r}")
    scope = Scope(HoldKind(kind), name)
    there = _NOUNS[kind].filter(name=name).exists()
    if not there or not (user is None or _may_all(user) or _visible(scope, user)):
        raise UnknownScope(f"there is no {scope}")
    return scope


def check_may_hold(scope: Scope, user: AbstractBaseUser | AnonymousUser) -> None:
    """Raise NotAllowed unless every series of *scope* is one that *user* may see: a hold stops them all."""
    mine = Series.objects.visible_to(user)
    if scope.series().exclude(pk__in=mine.values("pk")).exists():
        raise NotAllowed(f"the {scope} concerns series that are not yours to hold")


@transaction.atomic
def hold(
    scope: Scope, mode: HoldMode, *, who: str, why: str, now: datetime, until: datetime | None = None
) -> Hold:
    """From now on nothing of *scope* begins. What runs goes on to its end; *mode* decides what becomes of
    what is claimed and has not begun: a pause takes it back, while a drain lets it run.

    Raises:
        InvalidOrder: *why* or *until* cannot be kept.
        AlreadyHeld: it is held.
    """
    why = checked_reason(why)
    if until is not None and not (now < until <= LATEST):
        within = f"after {now:%Y-%m-%d %H:%M:%S} UTC, and until {LATEST:%Y}"
        raise InvalidRequest(f"until: expected a time {within}, got {until.isoformat()}")
    _nobody_claims()
    end_overdue(now)
    before = Hold.objects.at(now).of(scope).first()
    if before is not None:
        raise AlreadyHeld(before)
    made = Hold.objects.create(
        kind=scope.kind, name=scope.name, mode=mode, who=who, why=why, began_at=now, until=until
    )
    if mode == HoldMode.PAUSE:
        _take_back(made)
    return made


@transaction.atomic
def resume(scope: Scope, *, who: str, why: str, now: datetime) -> Hold:
    """End the hold of *scope*: what comes due from now on begins, unless another hold covers it.

    Raises:
        InvalidOrder: *why* cannot be kept.
        NotHeld: it is not held.
    """
    why = checked_reason(why)
    end_overdue(now)
    found = Hold.objects.select_for_update().at(now).of(scope).first()
    if found is None:
        raise NotHeld(f"the {scope} is not held")
    found.ended_at, found.ended_by, found.ended_why = now, who, why
    found.save(update_fields=["ended_at", "ended_by", "ended_why"])
    return found


def end_overdue(now: datetime) -> int:
    """End the holds whose time is over; how many."""
    return Hold.objects.overdue(now).update(ended_at=F("until"), ended_by=TIME_WAS_OVER)


def covering_holds(series: Iterable[int], holds: Iterable[Hold]) -> dict[int, Hold]:
    """Of *series*, by their keys, those that *holds* cover, each with the oldest over it.

    The number of queries depends on neither.
    """
    keys, holds = list(series), list(holds)
    found: dict[int, Hold] = {}
    for kind, named in SCOPE_LOOKUPS.items():
        of = {one.name: one for one in holds if one.kind == kind}
        concerned = (
            Series.objects.filter(pk__in=keys, **{f"{named}__in": list(of)}) if of else Series.objects.none()
        )
        for key, name in concerned.order_by().values_list("pk", named):
            found[key] = min(found.get(key, of[name]), of[name], key=lambda one: (one.began_at, one.pk))
    return found


def hold_progress(holds: Iterable[Hold]) -> list[HoldProgress]:
    """How far each of *holds*, which are in force, has come."""
    return [
        HoldProgress(one, Run.objects.in_flight().filter(series__in=one.scope.series()).count())
        for one in holds
    ]


def describe_hold(hold: Hold) -> str:
    """``paused by ada since 2026-03-01 12:00 UTC: disk swap``"""
    said = f"{HoldMode(hold.mode).label} by {hold.who} since {hold.began_at:%Y-%m-%d %H:%M} UTC"
    return (
        f"{said}: {hold.why}"
        if hold.until is None
        else (f"{said} until {hold.until:%Y-%m-%d %H:%M} UTC: {hold.why}")
    )


def checked_reason(why: str) -> str:
    """*why* on one line.

    Raises:
        InvalidOrder: it says nothing, too much, or what no text can be.
    """
    line = " ".join(why.split())
    if not line:
        raise InvalidRequest("why: expected a reason, got none")
    if len(line) > MAX_REASON_CHARACTERS:
        raise InvalidRequest(f"why: expected at most {MAX_REASON_CHARACTERS} characters, got {len(line)}")
    if "\x00" in line:
        raise InvalidRequest("why: expected text, got a NUL character")
    return line


def _may_all(user: AbstractBaseUser | AnonymousUser) -> bool:
    return user.is_active and getattr(user, "is_superuser", False)


def _visible(scope: Scope, user: AbstractBaseUser | AnonymousUser) -> bool:
    return scope.series().filter(pk__in=Series.objects.visible_to(user).values("pk")).exists()


def _nobody_claims() -> None:
    """Until the end of the transaction: who claims after it knows of the hold, what was claimed is seen."""
    lock_until_commit(AdvisoryLock.CLAIM)


def _take_back(hold: Hold) -> None:
    # The state stays in the statement: a run that begins meanwhile goes on to its end.
    claimed = Run.objects.filter(series__in=hold.scope.series(), state=State.CLAIMED)
    slots = dict(claimed.order_by().values_list("pk", "slot"))
    transitions.move(
        claimed,
        slots,
        State.SKIPPED,
        slots=set(slots.values()),
        cause=f"the {hold.scope} was paused",
        reason=hold.reason,
    )
