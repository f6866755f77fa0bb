"""The report on a period: availability and reliability of sites and suites, and the worst episodes.

It reads stored days, months and incidents only, never runs. Shares are ratios of sums: of a suite, over the
sites that its series use; of all sites, over all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncMonth, TruncWeek

from monitor.core.db.timestamps import micros
from monitor.depot.series.arrays_sql import sites_of_suites
from monitor.models import Incident, IncidentSeries, Site, SiteDay, SiteMonth, Suite
from monitor.models.incident import MONITOR, REPORTER, SERIES
from monitor.models.natural_order import sort_name
from monitor.models.visibility import sees_all
from monitor.web.reports.periods import PeriodKind, ReportPeriod, month_of, week_of
from monitor.web.status import column_arrays
from monitor.web.status.column_arrays import NEVER

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from numpy.typing import NDArray

MOST_EPISODES = 20
MOST_PERIODS = 60
_DAY = timedelta(days=1)
_INCIDENTS = {
    "pk": ("integer", "id"),
    "name": ("text", "name"),
    "since": ("time", "since"),
    "resolved_at": ("time", "coalesce(resolved_at, '-infinity')"),
}
_SECONDS = ("up_seconds", "unknown_seconds", "scheduled_seconds", "down_seconds")


class StatusTotals(NamedTuple):
    """Seconds by status, of one site or of several together, of *whole* seconds of the period."""

    up: int = 0
    unknown: int = 0
    scheduled: int = 0
    down: int = 0
    whole: float = 0.0

    @property
    def availability(self) -> float | None:
        known = self.up + self.scheduled + self.down
        return self.up / known if known else None

    @property
    def reliability(self) -> float | None:
        counted = self.up + self.down
        return self.up / counted if counted else None

    @property
    def coverage(self) -> float | None:
        """The share of the period about which anything is known."""
        known = self.up + self.scheduled + self.down
        return min(known / self.whole, 1.0) if self.whole else None


class Repairs(NamedTuple):
    """Incidents at a site: how many began in the period, and how long the ended ones lasted."""

    began: int = 0
    ended: int = 0
    seconds: float = 0.0

    @property
    def to_repair(self) -> float | None:
        """The mean time to repair, in seconds; None if no incident ended."""
        return self.seconds / self.ended if self.ended else None

    def between(self, up_seconds: float) -> float | None:
        """Return the mean time between failures: up time per incident that began; None if none did."""
        return up_seconds / self.began if self.began else None


@dataclass(frozen=True)
class ReportRow:
    """A site or a suite (or all sites) in the period and in the one *before*."""

    name: str
    title: str
    totals: StatusTotals
    before: StatusTotals
    repairs: Repairs

    @property
    def change(self) -> float | None:
        """The difference of the availabilities, as a share; None if one of them is not known."""
        if self.totals.availability is None or self.before.availability is None:
            return None
        return self.totals.availability - self.before.availability

    @property
    def between_failures(self) -> float | None:
        return self.repairs.between(self.totals.up)


class ReportedIncidents(NamedTuple):
    """Incidents (primary keys) at parts of the grid with these names, as arrays.

    Times are microseconds since 1970, UTC; *resolved_at* is ``NEVER`` of an open one.
    """

    pk: NDArray[np.int64]
    name: NDArray[np.object_]
    since: NDArray[np.int64]
    resolved_at: NDArray[np.int64]

    def has_ended(self, until: int) -> NDArray[np.bool_]:
        is_resolved = np.not_equal(self.resolved_at, NEVER)
        ended: NDArray[np.bool_] = is_resolved & (self.resolved_at <= until)
        return ended


@dataclass(frozen=True)
class ReportEpisode:
    """An incident and how many *seconds* of the period it lasted; *series* counts those that it affected."""

    incident: Incident
    seconds: float
    series: int


@dataclass(frozen=True)
class AvailabilityReport:
    """The report of *period*; *is_provisional*: late results still change it. *sites*: the worst first."""

    period: ReportPeriod
    is_provisional: bool
    total: ReportRow
    sites: Sequence[ReportRow]
    suites: Sequence[ReportRow]
    episodes: Sequence[ReportEpisode]
    episode_count: int


@dataclass(frozen=True)
class PeriodLine:
    """A past period in a list, with the totals of all sites."""

    period: ReportPeriod
    totals: StatusTotals


def availability_report(
    user: AbstractBaseUser | AnonymousUser, period: ReportPeriod, now: datetime
) -> AvailabilityReport:
    """Return the report of *period* about what *user* may see."""
    suites = Suite.objects.visible_to(user).in_bulk()
    sites_of = _sites_of(suites)
    visible = None if sees_all(user) else {site for own in sites_of.values() for site in own}
    totals, before = _totals(visible, period, now), _totals(visible, period.before, now)
    sites = Site.objects.in_bulk({*totals, *before})
    incidents = _incidents(user, period, now)
    start, until = micros(period.start), micros(period.until(now))
    repairs = repairs_by_name(incidents, start, until)
    rows = {
        key: ReportRow(
            site.name,
            site.title,
            totals.get(key, StatusTotals()),
            before.get(key, StatusTotals()),
            repairs.get(site.name, Repairs()),
        )
        for key, site in sites.items()
    }
    return AvailabilityReport(
        period=period,
        is_provisional=_is_provisional(period, now),
        total=combined("All sites", "", rows.values()),
        sites=sorted(rows.values(), key=_badness),
        suites=_suites(suites, sites_of, rows),
        episodes=_episodes(user, incidents, start, until),
        episode_count=len(incidents.pk),
    )


def past_periods(user: AbstractBaseUser | AnonymousUser, kind: PeriodKind, now: datetime) -> list[PeriodLine]:
    """Return the periods of *kind* with stored days, newest first, at most ``MOST_PERIODS``."""
    truncated = TruncMonth("day") if kind == PeriodKind.MONTHLY else TruncWeek("day")
    period_of = month_of if kind == PeriodKind.MONTHLY else week_of
    first = period_of(now.date())
    for _ in range(MOST_PERIODS - 1):
        first = first.before
    days = SiteDay.objects.visible_to(user).of_sites().filter(day__gte=first.first).order_by()
    rows = (
        days.annotate(begin=truncated).values("begin").annotate(sites=Count("site", distinct=True), **_sums())
    )
    lines = [_line(period_of(row["begin"]), row, now) for row in rows]
    return sorted(lines, key=lambda line: line.period.first, reverse=True)


def _line(period: ReportPeriod, row: Mapping[str, Any], now: datetime) -> PeriodLine:
    elapsed = (period.until(now) - period.start).total_seconds()
    return PeriodLine(period, _from_row(row, elapsed * row["sites"]))


def repairs_by_name(incidents: ReportedIncidents, start: int, until: int) -> dict[str, Repairs]:
    """Return the repairs from *start* *until* a time by name of the site of *incidents*. Pure."""
    names, site = np.unique(incidents.name.astype(str), return_inverse=True)
    has_ended = incidents.has_ended(until)
    seconds = (np.where(has_ended, incidents.resolved_at, incidents.since) - incidents.since) / 1e6
    began, ended, total = (
        np.bincount(site, weights=weights, minlength=len(names)).tolist()
        for weights in (incidents.since >= start, has_ended, seconds)
    )
    rows = zip(names.tolist(), began, ended, total, strict=True)
    return {name: Repairs(int(began), int(ended), seconds) for name, began, ended, seconds in rows}


def combined(name: str, title: str, rows: Iterable[ReportRow]) -> ReportRow:
    """Return the sum of *rows*. Pure."""
    rows = list(rows)
    return ReportRow(
        name,
        title,
        StatusTotals(*_summed([StatusTotals(), *(row.totals for row in rows)])),
        StatusTotals(*_summed([StatusTotals(), *(row.before for row in rows)])),
        Repairs(*_summed([Repairs(), *(row.repairs for row in rows)])),
    )


def _summed(rows: Iterable[tuple[float, ...]]) -> Iterator[Any]:
    return map(sum, zip(*rows, strict=True))


def _badness(row: ReportRow) -> tuple[float, str]:
    share = row.totals.availability
    return (2.0 if share is None else share, sort_name(row.name))


def _sums() -> dict[str, Sum]:
    return {f"sum_{column}": Sum(column) for column in _SECONDS}


def _from_row(row: Mapping[str, Any], whole: float) -> StatusTotals:
    up, unknown, scheduled, down = (row[f"sum_{column}"] for column in _SECONDS)
    return StatusTotals(up, unknown, scheduled, down, whole)


def _totals(sites: Collection[int] | None, period: ReportPeriod, now: datetime) -> dict[int, StatusTotals]:
    """Return the totals of each of *sites* (primary keys; None: all) with stored days in *period*."""
    days = SiteDay.objects.of_sites().filter(day__gte=period.first, day__lt=period.end)
    if sites is not None:
        days = days.filter(site__in=sites)
    rows = days.order_by().values("site").annotate(**_sums())
    whole = (period.until(now) - period.start).total_seconds()
    return {row["site"]: _from_row(row, whole) for row in rows}


def _suites(
    suites: Mapping[int, Suite], sites_of: Mapping[int, Sequence[int]], rows: Mapping[int, ReportRow]
) -> list[ReportRow]:
    """Return a row for each of *suites* with series, over the sites that they use."""
    return [
        combined(suites[key].name, suites[key].title, (rows[site] for site in sites_of[key] if site in rows))
        for key in sorted(sites_of, key=lambda key: suites[key].sort_name)
    ]


def _sites_of(suites: Collection[int]) -> dict[int, list[int]]:
    """Return by suite, of *suites*, the keys of the sites that its series use, in order."""
    used: dict[int, list[int]] = defaultdict(list)
    for suite, site in sites_of_suites():
        if suite in suites:
            used[suite].append(site)
    return used


def _incidents(
    user: AbstractBaseUser | AnonymousUser, period: ReportPeriod, now: datetime
) -> ReportedIncidents:
    """Return the incidents of failures that lasted in *period*, and that *user* may see."""
    lasted = Q(since__lt=period.until(now)) & (Q(resolved_at=None) | Q(resolved_at__gt=period.start))
    visible = Incident.objects.visible_to(user).filter(lasted).exclude(kind__in=[MONITOR, REPORTER, SERIES])
    return ReportedIncidents(**column_arrays.read_rows(_INCIDENTS, visible))


def _episodes(
    user: AbstractBaseUser | AnonymousUser, incidents: ReportedIncidents, start: int, until: int
) -> list[ReportEpisode]:
    """Return those of *incidents* that lasted longest from *start* *until* a time, the longest first.

    They count the affected series that *user* may see.
    """
    ends = np.where(incidents.has_ended(until), incidents.resolved_at, until)
    lengths = ends - np.maximum(incidents.since, start)
    order = np.lexsort([incidents.pk, -lengths])[:MOST_EPISODES]
    seconds = dict(zip(incidents.pk[order].tolist(), (lengths[order] / 1e6).tolist(), strict=True))
    shown = Incident.objects.select_related("signature").in_bulk(list(seconds))
    affected = IncidentSeries.objects.visible_to(user).filter(incident__in=list(seconds)).order_by()
    counts = dict(affected.values_list("incident").annotate(Count("series", distinct=True)))
    return [ReportEpisode(shown[key], seconds[key], counts.get(key, 0)) for key in seconds if key in shown]


def _is_provisional(period: ReportPeriod, now: datetime) -> bool:
    """Return whether late results may still change the days: the period lasts, or a month is not final."""
    months = {date(day.year, day.month, 1) for day in (period.first, period.end - _DAY)}
    published = SiteMonth.objects.of_sites().filter(month__in=months)
    return period.until(now) == now or published.filter(published_at=None).exists()
