"""Which part of the grid a scrape may see, and which part it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet

from monitor.analysis.availability.site_states import site_states
from monitor.models import Binding, Reporter, Series, Site
from monitor.models.role import keep_roles
from monitor.web.metrics.definitions import Group
from monitor.web.metrics.text_format import labelled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.analysis.availability.site_states import CurrentState
    from monitor.models.series import SeriesQuerySet


@dataclass(frozen=True)
class ScrapeRequest:
    """What a scrape asks for; empty: everything that it may see.

    Attributes:
        user: the caller; None is a host that the settings allow: it sees the series that every user sees.
    """

    user: AbstractBaseUser | AnonymousUser | None
    groups: frozenset[Group] = frozenset(Group)
    suites: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[object, ...]:
        return (self.user.pk if self.user else None, self.groups, self.suites, self.sites)


def _guest() -> User:
    """Return a user that sees what every user sees: it has no groups, and no row in the database."""
    guest = User(username="metrics")
    keep_roles(guest, ())
    return guest


class Described(NamedTuple):
    """A series that an answer describes."""

    name: str
    suite: str
    probe: str
    reporter: str


@dataclass(frozen=True)
class ScrapeScope:
    """The series of a scrape, at most *limit* of them, in the order of their names."""

    request: ScrapeRequest
    now: datetime
    limit: int

    def series(self) -> SeriesQuerySet:
        """Return all series that the scrape may see and asks for."""
        user, request = self.request.user, self.request
        found = Series.objects.open_to_all() if user is None else Series.objects.visible_to(user)
        if request.suites:
            found = found.filter(suite__name__in=request.suites)
        if request.sites:
            found = found.filter(bindings__resource__site__name__in=request.sites).distinct()
        return found

    def reporters(self) -> QuerySet[Reporter]:
        """Return the reporters of series that the scrape may see."""
        if self.request.user is None:
            return Reporter.objects.filter(series__in=Series.objects.open_to_all()).distinct()
        return Reporter.objects.manageable_or_visible_to(self.request.user)

    def site_states(self) -> Mapping[str, CurrentState]:
        """Return the present states of the sites that the scrape may see and asks for, by name."""
        user = self.request.user
        if user is None:
            bindings = Binding.objects.filter(series__in=Series.objects.open_to_all())
            sites = Site.objects.filter(pk__in=bindings.order_by().values("resource__site"))
        else:
            sites = Site.objects.visible_to(user)
        if self.request.sites:
            sites = sites.filter(name__in=self.request.sites)
        names = list(sites.order_by("sort_name").values_list("name", flat=True))
        return site_states(user or _guest(), names, self.now)

    @cached_property
    def total(self) -> int:
        return self.series().count()

    @cached_property
    def described(self) -> Mapping[int, Described]:
        """The described series by primary key."""
        columns = "pk", "name", "suite__name", "probe", "reporter__name"
        rows = self.series().order_by("sort_name").values_list(*columns)[: self.limit]
        return {key: Described(*names) for key, *names in rows}

    @cached_property
    def labels(self) -> Mapping[int, str]:
        """The labels ``series`` and ``suite`` of the described series, as text, by primary key."""
        return {key: labelled(("series", "suite"), each[:2]) for key, each in self.described.items()}

    @property
    def keys(self) -> Sequence[int]:
        return list(self.described)
