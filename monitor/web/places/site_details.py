"""The page of a site: its state and everything that runs through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Prefetch, Q

from monitor.analysis.availability.site_states import CurrentState, states_at_site
from monitor.analysis.outcomes.by_category import CategoryFailures, failed_at, failures_by_category
from monitor.analysis.performance.stage_durations_sql import StageDuration
from monitor.models import (
    Binding,
    Hold,
    Incident,
    IncidentEvent,
    IncidentSeries,
    Reporter,
    Resource,
    Series,
    Site,
    SiteDay,
    SiteMonth,
)
from monitor.models.hold import HoldKind
from monitor.models.incident import REPORTER, SERIES, IncidentAction
from monitor.runs.maintenance.windows import ShownWindow, open_and_planned
from monitor.web.places.place_details import (
    ApplicationForecast,
    application_forecasts,
    durations_in,
)
from monitor.web.places.reporters import ReporterStanding, reporter_standings
from monitor.web.search.series_list import SeriesChoice, SeriesPage, list_series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.incident import IncidentQuerySet

CALENDAR = timedelta(days=365)
RESOLVED_INCIDENTS = 5


class _Binding(NamedTuple):
    """The primary keys of a series, of a resource that it uses, and of its reporter."""

    series: int
    resource: int
    reporter: int


@dataclass(frozen=True)
class VisiblePlace:
    """What *user* may see of *site*: its resources by name, and the bindings of visible series to them.

    Nearly every figure of the page needs the series: they are read once.
    """

    user: AbstractBaseUser | AnonymousUser
    site: Site
    resources: Sequence[Resource]
    bindings: Sequence[_Binding]

    @classmethod
    def of(cls, user: AbstractBaseUser | AnonymousUser, site: Site) -> VisiblePlace:
        visible = Series.objects.visible_to(user).order_by()
        bindings = Binding.objects.filter(resource__site=site, series__in=visible).order_by()
        rows = bindings.values_list("series", "resource", "series__reporter")
        resources = Resource.objects.filter(site=site).order_by("sort_name")
        return cls(user, site, list(resources.visible_to(user)), [_Binding(*row) for row in rows])

    @cached_property
    def series(self) -> list[int]:
        """The primary keys of the series, sorted."""
        return sorted({binding.series for binding in self.bindings})


@dataclass(frozen=True)
class ResourceRow:
    """A resource of the site; *series* counts the series that the user may see."""

    resource: Resource
    state: CurrentState
    series: int


@dataclass(frozen=True)
class ReporterRow:
    """A reporter that runs *series* of the site; *is_here*: its agent is at the site."""

    standing: ReporterStanding
    series: int
    is_here: bool


@dataclass(frozen=True)
class ResolvedIncident:
    incident: Incident
    comments: Sequence[str]

    @property
    def seconds(self) -> float:
        ended = self.incident.resolved_at or self.incident.since
        return (ended - self.incident.since).total_seconds()


class ShownSite:
    """The content of the page; each figure is computed when it is first asked for.

    *failures* and *stages* are from *start* (None: all) to *end*; *days* are of the last year.
    """

    def __init__(
        self, place: VisiblePlace, now: datetime, start: datetime | None, end: datetime, order: str, page: int
    ) -> None:
        self._place, self._now, self._start, self._end = place, now, start, end
        self._order, self._page = order, page

    @property
    def state(self) -> CurrentState:
        return self._states[0]

    @cached_property
    def hold(self) -> Hold | None:
        """The hold of the site in force; None if runs may start."""
        return Hold.objects.at(self._now).filter(kind=HoldKind.SITE, name=self._place.site.name).first()

    @cached_property
    def resources(self) -> list[ResourceRow]:
        return _resources(self._place, self._states[1])

    @cached_property
    def reporters(self) -> list[ReporterRow]:
        return _reporters(self._place, self._now)

    @cached_property
    def maintenance(self) -> Sequence[ShownWindow]:
        """The open and the planned windows at the site."""
        return open_and_planned(self._place.user, self._now, self._place.site)

    @cached_property
    def incidents(self) -> list[Incident]:
        """The open ones that affect a series of the site, or whose failures are at the site."""
        return list(_incidents(self._place).open().order_by("-since"))

    @cached_property
    def series(self) -> SeriesPage:
        """A page of the series."""
        choice = SeriesChoice(site=self._place.site.name)
        return list_series(self._place.user, self._now, choice, order=self._order, page=self._page)

    @cached_property
    def month(self) -> SiteMonth | None:
        months = SiteMonth.objects.of_sites().filter(site=self._place.site)
        if not self._place.series:  # a user who sees a series at the site sees the availability there
            months = months.visible_to(self._place.user)
        return months.filter(month=self._today.replace(day=1)).first()

    @cached_property
    def days(self) -> list[SiteDay]:
        days = SiteDay.objects.of_sites().filter(site=self._place.site)
        if not self._place.series:
            days = days.visible_to(self._place.user)
        return list(days.filter(day__gt=self._today - CALENDAR).order_by("day"))

    @property
    def months(self) -> list[SiteMonth]:
        """The sums of *days* by month, newest first; the first and the last month may lack days."""
        by_month = groupby(self.days, key=lambda day: day.day.replace(day=1))
        return [_sum(month, list(days)) for month, days in by_month][::-1]

    @cached_property
    def failures(self) -> Sequence[CategoryFailures]:
        names = [resource.name for resource in self._place.resources]
        return failures_by_category(failed_at(names, self._place.series), self._start, self._end)

    @cached_property
    def stages(self) -> Sequence[StageDuration]:
        return durations_in(self._place.series, self._start, self._end)

    @cached_property
    def forecasts(self) -> Sequence[ApplicationForecast]:
        return application_forecasts(Series.objects.filter(pk__in=self._place.series))

    @cached_property
    def resolved(self) -> list[ResolvedIncident]:
        return _resolved(self._place)

    @cached_property
    def _states(self) -> tuple[CurrentState, Mapping[str, CurrentState]]:
        return states_at_site(self._place.user, self._place.site.name, self._now)

    @property
    def _today(self) -> date:
        return self._now.astimezone(UTC).date()


def _sum(month: date, days: Sequence[SiteDay]) -> SiteMonth:
    """Return the sum of *days*, which is not stored."""
    columns = ("up_seconds", "unknown_seconds", "scheduled_seconds", "down_seconds")
    sums = {column: sum(getattr(day, column) for day in days) for column in columns}
    return SiteMonth(month=month, **sums)


def _resources(place: VisiblePlace, states: Mapping[str, CurrentState]) -> list[ResourceRow]:
    counts = Counter(resource for resource, _ in {(each.resource, each.series) for each in place.bindings})
    return [
        ResourceRow(each, states[each.name], counts[each.pk])
        for each in place.resources
        if each.name in states
    ]


def _reporters(place: VisiblePlace, now: datetime) -> list[ReporterRow]:
    counts = Counter(reporter for reporter, _ in {(each.reporter, each.series) for each in place.bindings})
    reporters = Reporter.objects.manageable_or_visible_to(place.user)
    standings = reporter_standings(reporters.filter(Q(pk__in=counts) | Q(site=place.site)), now)
    return [
        ReporterRow(each, counts[each.reporter.pk], each.reporter.site_id == place.site.pk)
        for each in standings
    ]


def _incidents(place: VisiblePlace) -> IncidentQuerySet:
    """Return the incidents that the user may see, with a cause at the site or an affected series there."""
    name = place.site.name
    is_edge = Q(name__startswith=f"{name}>") | Q(name__endswith=f">{name}")
    here = (Q(name=name) | is_edge) & ~Q(kind__in=[REPORTER, SERIES])
    affected = IncidentSeries.objects.filter(series__in=place.series, until=None).order_by()
    visible = Incident.objects.visible_to(place.user).select_related("signature")
    return visible.filter(here | Q(pk__in=affected.values("incident")))


def _resolved(place: VisiblePlace) -> list[ResolvedIncident]:
    """Return the newest resolved incidents at the site, with what users wrote about them."""
    comments = IncidentEvent.objects.visible_to(place.user).filter(action=IncidentAction.COMMENTED)
    rows = _incidents(place).exclude(resolved_at=None).order_by("-resolved_at", "-pk")
    found = rows.prefetch_related(Prefetch("events", comments))[:RESOLVED_INCIDENTS]
    return [ResolvedIncident(row, [event.text for event in row.events.all()]) for row in found]
