"""List holds for pages: the scopes that can be held, the holds in force, and the history of holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import OuterRef, QuerySet

from monitor.models import Hold, Reporter, Series, Site, Suite
from monitor.models.hold import HoldKind, HoldMode, HoldQuerySet, Scope
from monitor.models.visibility import has_row

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


@dataclass(frozen=True)
class HoldEvent:
    """The beginning or the end of a hold, which the user *who* caused; *who* is empty if the hold expired."""

    at: datetime
    who: str
    did: str
    scope: Scope
    why: str
    until: datetime | None = None


@dataclass(frozen=True)
class HoldableScope:
    """A scope that can be held; *hold* is a hold of exactly this scope."""

    scope: Scope
    hold: Hold | None


@dataclass(frozen=True)
class HoldableScopes:
    """The first *scopes* of a kind, by name, and whether there are *more*."""

    scopes: Sequence[HoldableScope]
    has_more: bool


def hold_events(holds: HoldQuerySet, at_most: int) -> list[HoldEvent]:
    """Return the newest events of *holds*, newest first."""
    begun = holds.order_by("-began_at")[:at_most]
    ended = holds.exclude(ended_at=None).order_by("-ended_at")[:at_most]
    events = [
        *(_beginning(hold) for hold in begun),
        *(_ending(hold, hold.ended_at) for hold in ended if hold.ended_at),
    ]
    return sorted(events, key=lambda event: event.at, reverse=True)[:at_most]


def holdable_scopes(
    user: AbstractBaseUser | AnonymousUser, now: datetime, at_most: int
) -> dict[HoldKind, HoldableScopes]:
    """Return, by kind, *at_most* sites, suites and reporters of the series that *user* may see, by name."""
    holds = {hold.scope: hold for hold in Hold.objects.at(now)}
    of_reporter = Series.objects.visible_to(user).filter(reporter=OuterRef("pk"))
    of_suite = Series.objects.filter(suite=OuterRef("pk"))
    found: Mapping[HoldKind, QuerySet[Any]] = {
        HoldKind.SITE: Site.objects.with_series_visible_to(user),
        HoldKind.SUITE: Suite.objects.visible_to(user).filter(has_row(of_suite)),
        HoldKind.REPORTER: Reporter.objects.filter(has_row(of_reporter)),
    }
    shown = {}
    for kind, rows in found.items():
        names = list(rows.order_by("sort_name").values_list("name", flat=True)[: at_most + 1])
        scopes = [Scope(kind, name) for name in names[:at_most]]
        listed = [HoldableScope(scope, holds.get(scope)) for scope in scopes]
        shown[kind] = HoldableScopes(listed, len(names) > at_most)
    return shown


def _beginning(hold: Hold) -> HoldEvent:
    return HoldEvent(hold.began_at, hold.who, HoldMode(hold.mode).label, hold.scope, hold.why, hold.until)


def _ending(hold: Hold, at: datetime) -> HoldEvent:
    if hold.ended_why:
        return HoldEvent(at, hold.ended_by, "resumed", hold.scope, hold.ended_why)
    return HoldEvent(at, "", "over", hold.scope, hold.ended_by)
