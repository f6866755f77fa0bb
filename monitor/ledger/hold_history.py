"""What people see of holds: what is held now, what could be, and who did what, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Count

from monitor.models import Hold, Series
from monitor.models.hold import SCOPE_LOOKUPS, HoldKind, HoldMode, HoldQuerySet, Scope

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


@dataclass(frozen=True)
class HoldEvent:
    """Somebody, or the clock, did something to a scope."""

    at: datetime
    who: str
    did: str
    scope: Scope
    why: str
    until: datetime | None = None


@dataclass(frozen=True)
class HoldableScope:
    """Something that can be held, how many series of it one sees, and its own hold."""

    scope: Scope
    series: int
    hold: Hold | None


def hold_events(holds: HoldQuerySet, most: int) -> list[HoldEvent]:
    """The newest *most* entries about *holds*, newest first."""
    begun = holds.order_by("-began_at")[:most]
    ended = holds.exclude(ended_at=None).order_by("-ended_at")[:most]
    entries = [*(_begin(one) for one in begun), *(_end(one, one.ended_at) for one in ended if one.ended_at)]
    return sorted(entries, key=lambda entry: entry.at, reverse=True)[:most]


def holdable_scopes(
    user: AbstractBaseUser | AnonymousUser, now: datetime
) -> dict[HoldKind, Sequence[HoldableScope]]:
    """The sites, suites and reporters of the series that *user* may see."""
    holds = {one.scope: one for one in Hold.objects.at(now)}
    return {kind: _places(kind, user, holds) for kind in (HoldKind.SITE, HoldKind.SUITE, HoldKind.REPORTER)}


def _places(
    kind: HoldKind, user: AbstractBaseUser | AnonymousUser, holds: dict[Scope, Hold]
) -> list[HoldableScope]:
    visible = Series.objects.filter(pk__in=Series.objects.visible_to(user).values("pk")).order_by()
    counted = visible.values_list(SCOPE_LOOKUPS[kind]).annotate(Count("pk", distinct=True))
    scopes = sorted((name, count) for name, count in counted if name)
    return [HoldableScope(Scope(kind, name), count, holds.get(Scope(kind, name))) for name, count in scopes]


def _begin(hold: Hold) -> HoldEvent:
    return HoldEvent(hold.began_at, hold.who, HoldMode(hold.mode).label, hold.scope, hold.why, hold.until)


def _end(hold: Hold, at: datetime) -> HoldEvent:
    if hold.ended_why:
        return HoldEvent(at, hold.ended_by, "resumed", hold.scope, hold.ended_why)
    return HoldEvent(at, "", "over", hold.scope, hold.ended_by)
