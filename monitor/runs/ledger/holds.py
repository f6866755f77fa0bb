"""Pause, drain and resume a series, suite, site or reporter; record the user and the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, F, Max, Q
from django.db.models.functions import Coalesce

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.access.audit_trail import note
from monitor.models import Hold, Identity, Reporter, Run, Series, Site, Suite
from monitor.models.hold import MAX_REASON_CHARACTERS, SCOPE_LOOKUPS, HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.models.site import OPERATE, may_manage_everywhere
from monitor.models.visibility import sees_all
from monitor.runs.ledger import transitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

REPLACED = "replaced: the identity of its author is suspended"
EXPIRED = "its time was over"  # ``ended_by`` of a hold that ended by itself
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # Python cannot represent every time that PostgreSQL can
_SCOPED: dict[str, QuerySet[Any]] = {
    HoldKind.SERIES: Series.objects.all(),
    HoldKind.SUITE: Suite.objects.all(),
    HoldKind.SITE: Site.objects.all(),
    HoldKind.REPORTER: Reporter.objects.all(),
}


class HoldError(Exception):
    """The request is refused; the message says why.

    UnknownScope    the scope does not exist, or the user may see none of its series
    NotAllowed      the scope contains series that the user may not see, or its identity is gone
    InvalidRequest  the reason is missing or too long, or the time is past or too far away
    AlreadyHeld     the scope is already held by ``hold``
    NotHeld         the scope is not held, so it cannot be resumed
    RunHeld         ``hold`` prevents the requested run
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
        super().__init__(f"the {hold.scope} is already held: {describe_hold(hold)}")
        self.hold = hold


class RunHeld(HoldError):
    def __init__(self, series: str, hold: Hold) -> None:
        super().__init__(f"nothing of {series} starts now: the {hold.scope} is {describe_hold(hold)}")
        self.hold = hold


@dataclass(frozen=True)
class HoldProgress:
    """A hold in force; *left* is the number of runs in its scope that are still claimed or running."""

    hold: Hold
    left: int

    @property
    def words(self) -> str:
        if self.hold.mode == HoldMode.DRAIN:
            return f"draining, {self.left} left" if self.left else "drained"
        return f"paused, {self.left} still to end" if self.left else "paused"


def find_scope(kind: str, name: str, user: AbstractBaseUser | AnonymousUser | None = None) -> Scope:
    """Return the scope of this *kind* and *name*; without *user* (the command line) every scope is visible.

    Raises:
        UnknownScope: the scope does not exist, or *user* may see none of its series.
    """
    if kind not in HoldKind.values:
        raise UnknownScope(f"expected one of {', '.join(HoldKind.values)}, got {kind!r}")
    scope = Scope(HoldKind(kind), name)
    is_visible = user is None or sees_all(user) or scope.series().visible_to(user).exists()
    if not is_visible or not _SCOPED[kind].filter(name=name).exists():
        raise UnknownScope(f"there is no {scope}")
    return scope


def may_hold(scope: Scope, user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether ``check_may_hold`` lets *user* hold *scope*."""
    try:
        check_may_hold(scope, user)
    except NotAllowed:
        return False
    return True


def check_may_hold(scope: Scope, user: AbstractBaseUser | AnonymousUser) -> None:
    """Raise NotAllowed unless *user* may hold every series of *scope*: a hold stops all of them.

    A site admin may hold its whole site, with series that it may not see.
    """
    if not may_manage_everywhere(user):
        _check_own(scope, user)
        return
    visible = Series.objects.visible_to(user)
    if scope.series().exclude(pk__in=visible.values("pk")).exists():
        raise NotAllowed(f"the {scope} contains series that you may not see")


def _check_own(scope: Scope, user: AbstractBaseUser | AnonymousUser) -> None:
    """Raise NotAllowed unless *scope* is a site or reporter of *user*, or all its series use such sites."""
    match scope.kind:
        case HoldKind.SITE:
            is_own = Site.objects.manageable_by(user).filter(name=scope.name).exists()
        case HoldKind.REPORTER:
            is_own = Reporter.objects.manageable_by(user, OPERATE).filter(name=scope.name).exists()
        case _:
            manageable = Series.objects.manageable_by(user)
            is_own = not scope.series().exclude(pk__in=manageable.values("pk")).exists()
    if not is_own:
        raise NotAllowed(f"you may not hold the {scope}: your roles give you this right at other sites only")


@transaction.atomic
def hold(
    scope: Scope,
    mode: HoldMode,
    *,
    who: str,
    why: str,
    now: datetime,
    until: datetime | None = None,
    identity: int | None = None,
) -> Hold:
    """Hold *scope*: from now on none of its runs start. Running runs continue to their end.

    A pause skips runs that are claimed and have not started; a drain lets them run. *who* is the user, *why*
    the reason, both for the history of holds; *identity* is that by which the user acts. A hold of the scope
    whose author is suspended ends.

    Raises:
        InvalidRequest: *why* or *until* is invalid.
        NotAllowed: *identity* is gone since the request began.
        AlreadyHeld: the scope is held.
    """
    if not Identity.objects.keep(identity):
        raise NotAllowed("the identity by which you act was disconnected: log in again")
    why = checked_reason(why)
    if until is not None and not (now < until <= LATEST):
        within = f"after {now:%Y-%m-%d %H:%M:%S} UTC, and until {LATEST:%Y}"
        raise InvalidRequest(f"until: expected a time {within}, got {until.isoformat()}")
    lock_until_commit(AdvisoryLock.CLAIM)  # later claims see the hold; earlier ones are taken back below
    end_overdue(now)
    existing = Hold.objects.at(now).of(scope).first()
    if existing is not None:
        raise AlreadyHeld(existing)
    Hold.objects.filter(ended_at=None).of(scope).update(ended_at=now, ended_by=who, ended_why=REPLACED)
    created = Hold.objects.create(
        kind=scope.kind,
        name=scope.name,
        mode=mode,
        who=who,
        identity_id=identity,
        why=why,
        began_at=now,
        until=until,
    )
    if mode == HoldMode.PAUSE:
        _skip_claimed(created)
    note(scope.kind, scope.name, after=f"{mode}: {why}")
    return created


@transaction.atomic
def resume(scope: Scope, *, who: str, why: str, now: datetime) -> Hold:
    """End the hold of *scope*: runs that become due start again, unless another hold covers them.

    Raises:
        InvalidRequest: *why* is invalid.
        NotHeld: the scope is not held.
    """
    why = checked_reason(why)
    end_overdue(now)
    ended = Hold.objects.select_for_update(of=("self",)).filter(ended_at=None).of(scope).first()
    if ended is None:
        raise NotHeld(f"the {scope} is not held")
    ended.ended_at, ended.ended_by, ended.ended_why = now, who, why
    ended.save(update_fields=["ended_at", "ended_by", "ended_why"])
    note(scope.kind, scope.name, before=f"{ended.mode}: {ended.why}", after=f"resumed: {why}")
    return ended


def end_overdue(now: datetime) -> int:
    """End the holds whose ``until`` has passed; return the number of ended holds."""
    return Hold.objects.overdue(now).update(ended_at=F("until"), ended_by=EXPIRED)


def last_ends_at_sites(sites: Iterable[str], now: datetime) -> dict[str, datetime]:
    """Return when the last hold of each of *sites* (names) ended before *now*; omit sites without one."""
    ended = Hold.objects.filter(kind=HoldKind.SITE, name__in=list(sites)).filter(
        Q(ended_at__lte=now) | Q(ended_at=None, until__lte=now)
    )
    return dict(ended.order_by().values_list("name").annotate(end=Max(Coalesce("ended_at", "until"))))


def covering_holds(series: Iterable[int], holds: Iterable[Hold]) -> dict[int, Hold]:
    """Return, by primary key of the series, the oldest of *holds* that covers the series.

    Series that no hold covers are absent. The function runs at most four queries.
    """
    keys, holds = list(series), list(holds)
    covering: dict[int, Hold] = {}
    for kind, lookup in SCOPE_LOOKUPS.items():
        by_name = {hold.name: hold for hold in holds if hold.kind == kind}
        covered = Series.objects.filter(pk__in=keys, **{f"{lookup}__in": list(by_name)})
        for key, name in covered.order_by().values_list("pk", lookup) if by_name else ():
            candidates = (covering.get(key, by_name[name]), by_name[name])
            covering[key] = min(candidates, key=lambda hold: (hold.began_at, hold.pk))
    return covering


def hold_progress(holds: Iterable[Hold]) -> list[HoldProgress]:
    """Return the progress of each of *holds*, all of which must be in force; at most five queries."""
    holds = list(holds)
    in_flight = Run.objects.in_flight() if holds else Run.objects.none()
    running = dict(in_flight.order_by().values_list("series").annotate(runs=Count("*")))
    counts: Counter[tuple[str, str]] = Counter()
    for kind, lookup in SCOPE_LOOKUPS.items():
        names = {hold.name for hold in holds if hold.kind == kind}
        held = Series.objects.filter(pk__in=list(running), **{f"{lookup}__in": names}).order_by()
        pairs = held.values_list("pk", lookup).distinct() if names and running else ()
        for key, name in pairs:
            counts[kind, name] += running[key]
    return [HoldProgress(hold, counts[hold.kind, hold.name]) for hold in holds]


def describe_hold(hold: Hold) -> str:
    """Return *hold* in words: ``paused by ada since 2026-03-01 12:00 UTC: disk swap``."""
    text = f"{HoldMode(hold.mode).label} by {hold.who} since {hold.began_at:%Y-%m-%d %H:%M} UTC"
    if hold.until is not None:
        text += f" until {hold.until:%Y-%m-%d %H:%M} UTC"
    return f"{text}: {hold.why}"


def checked_reason(why: str) -> str:
    """Return *why* on one line.

    Raises:
        InvalidRequest: it is empty, too long, or contains a NUL character.
    """
    line = " ".join(why.split())
    if not line:
        raise InvalidRequest("why: expected a reason, got none")
    if len(line) > MAX_REASON_CHARACTERS:
        raise InvalidRequest(f"why: expected at most {MAX_REASON_CHARACTERS} characters, got {len(line)}")
    if "\x00" in line:
        raise InvalidRequest("why: expected text, got a NUL character")
    return line


def _skip_claimed(hold: Hold) -> None:
    # The query that updates filters by state again: a run that starts meanwhile goes on to its end.
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
