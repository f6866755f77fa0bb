"""The page of a site: its state and everything that runs through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from django.db.models import Prefetch, Q, QuerySet

from monitor.availability.report import MonthOfSite, months_of_sites
from monitor.availability.site_states import CurrentState, states_at_site
from monitor.failures.by_category import CategoryFailures, failed_at, failures_by_category
from monitor.ledger.maintenance import ShownWindow, open_and_planned
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
from monitor.overview.place_details import (
    ApplicationForecast,
    application_forecasts,
    bound_series,
    durations_in,
)
from monitor.overview.reporters import ReporterStanding, reporter_standings
from monitor.overview.series_list import SeriesChoice, SeriesPage, list_series
from monitor.performance.stage_durations_sql import StageDuration

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.incident import IncidentQuerySet

CALENDAR = timedelta(days=365)
RESOLVED_INCIDENTS = 5


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


@dataclass(frozen=True)
class SiteStatus:
    """What is true of a site now.

    Attributes:
        hold: the hold of the site in force; None if runs may start.
        maintenance: open and planned windows at the site.
        incidents: those open that affect a series of the site, or whose failures are at the site.
    """

    site: Site
    state: CurrentState
    hold: Hold | None
    resources: Sequence[ResourceRow]
    reporters: Sequence[ReporterRow]
    maintenance: Sequence[ShownWindow]
    incidents: Sequence[Incident]
    series: SeriesPage


@dataclass(frozen=True)
class SiteHistory:
    """What happened at a site in the time range; *days* and *month* are of the last year and this month."""

    month: MonthOfSite | None
    days: Sequence[SiteDay]
    failures: Sequence[CategoryFailures]
    stages: Sequence[StageDuration]
    forecasts: Sequence[ApplicationForecast]
    resolved: Sequence[ResolvedIncident]

    @property
    def months(self) -> list[SiteMonth]:
        """The sums of *days* by month, newest first; the first and the last month may lack days."""
        by_month = groupby(self.days, key=lambda day: day.day.replace(day=1))
        return [_sum(month, list(days)) for month, days in by_month][::-1]


def site_status(
    user: AbstractBaseUser | AnonymousUser, site: Site, now: datetime, *, order: str, page: int
) -> SiteStatus:
    """Return the status of *site*, with a *page* of its series in the *order* of ``series_list``."""
    state, states = states_at_site(user, site.name, now)
    return SiteStatus(
        site=site,
        state=state,
        hold=Hold.objects.at(now).filter(kind=HoldKind.SITE, name=site.name).first(),
        resources=_resources(user, site, states),
        reporters=_reporters(user, site, now),
        maintenance=open_and_planned(user, now, site),
        incidents=list(_incidents(user, site).open().order_by("-since")),
        series=list_series(user, now, SeriesChoice(site=site.name), order=order, page=page),
    )


def site_history(
    user: AbstractBaseUser | AnonymousUser, site: Site, now: datetime, start: datetime | None, end: datetime
) -> SiteHistory:
    """Return the history of *site*; failures and stages are from *start* (None: all) to *end*."""
    today = now.astimezone(UTC).date()
    resources = Resource.objects.visible_to(user).filter(site=site).order_by("sort_name")
    names = list(resources.values_list("name", flat=True))
    series = bound_series(Series.objects.visible_to(user), names)
    days = SiteDay.objects.visible_to(user).of_sites().filter(site=site, day__gt=today - CALENDAR)
    return SiteHistory(
        month=next(iter(months_of_sites(today.replace(day=1), now, user, [site])), None),
        days=list(days.order_by("day")),
        failures=failures_by_category(failed_at(user, names), start, end),
        stages=durations_in(list(series.values_list("pk", flat=True)), start, end),
        forecasts=application_forecasts(series),
        resolved=_resolved(user, site),
    )


def _sum(month: date, days: Sequence[SiteDay]) -> SiteMonth:
    """Return the sum of *days*, which is not stored."""
    columns = ("up_seconds", "unknown_seconds", "scheduled_seconds", "down_seconds")
    sums = {column: sum(getattr(day, column) for day in days) for column in columns}
    return SiteMonth(month=month, **sums)


def _resources(
    user: AbstractBaseUser | AnonymousUser, site: Site, states: Mapping[str, CurrentState]
) -> list[ResourceRow]:
    resources = Resource.objects.visible_to(user).filter(site=site).order_by("sort_name")
    pairs = _bindings(user, site).values_list("resource", "series").distinct()
    counts = Counter(resource for resource, _ in pairs)
    return [
        ResourceRow(each, states[each.name], counts[each.pk]) for each in resources if each.name in states
    ]


def _reporters(user: AbstractBaseUser | AnonymousUser, site: Site, now: datetime) -> list[ReporterRow]:
    pairs = _bindings(user, site).values_list("series__reporter", "series").distinct()
    counts = Counter(reporter for reporter, _ in pairs)
    reporters = Reporter.objects.manageable_or_visible_to(user)
    standings = reporter_standings(reporters.filter(Q(pk__in=counts) | Q(site=site)), now)
    return [
        ReporterRow(each, counts[each.reporter.pk], each.reporter.site_id == site.pk) for each in standings
    ]


def _bindings(user: AbstractBaseUser | AnonymousUser, site: Site) -> QuerySet[Binding]:
    visible = Series.objects.visible_to(user).order_by()
    return Binding.objects.filter(resource__site=site, series__in=visible).order_by()


def _incidents(user: AbstractBaseUser | AnonymousUser, site: Site) -> IncidentQuerySet:
    """Return the incidents that *user* may see, with a cause at *site* or an affected series there."""
    series = _bindings(user, site).values("series")
    is_edge = Q(name__startswith=f"{site.name}>") | Q(name__endswith=f">{site.name}")
    here = (Q(name=site.name) | is_edge) & ~Q(kind__in=[REPORTER, SERIES])
    affected = IncidentSeries.objects.filter(series__in=series, until=None).order_by().values("incident")
    visible = Incident.objects.visible_to(user).select_related("signature")
    return visible.filter(here | Q(pk__in=affected))


def _resolved(user: AbstractBaseUser | AnonymousUser, site: Site) -> list[ResolvedIncident]:
    """Return the newest resolved incidents at *site*, with what users wrote about them."""
    comments = IncidentEvent.objects.visible_to(user).filter(action=IncidentAction.COMMENTED)
    rows = _incidents(user, site).exclude(resolved_at=None).order_by("-resolved_at", "-pk")
    found = rows.prefetch_related(Prefetch("events", comments))[:RESOLVED_INCIDENTS]
    return [ResolvedIncident(row, [event.text for event in row.events.all()]) for row in found]
