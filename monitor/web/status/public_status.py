"""What visitors see without a login: the states of the sites and suites that are marked public.

Names and titles of these sites and suites, states in words, availability by day, and causes of open incidents
by the titles of shipped signatures. No series, host, user or reason is named, for these may be internal.
Runs of suites with viewers do not count for the states of sites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from django.db.models import Exists, OuterRef

from monitor.analysis.availability.site_states import CurrentState, OperationalState, public_site_states
from monitor.analysis.incidents.causes import AT
from monitor.models import Incident, IncidentSeries, Series, Site, SiteDay, Suite
from monitor.models.failure_signature import Origin
from monitor.web.status import allowed_ages, latest
from monitor.web.status.series_states import BY_GRID, series_states, stale_rows

SHOWN_DAYS = 90
_DAY_SECONDS = 86400
Computed = TypeVar("Computed")
_NEARLY_ALL = 0.99
SITE_PART = "site"
OTHER_CAUSE = "Failures"  # of a signature that users wrote: its title may name hosts


class Compute(Protocol):
    """Return what the function returns, which is the named part of an answer; None if it raises."""

    def __call__(self, part: str, function: Callable[[], Computed], /) -> Computed | None: ...


class PublicState(StrEnum):
    """The state of a public site or suite."""

    OPERATIONAL = "operational"
    DEGRADED = "degraded"  # some resources or series fail, others work
    DOWN = "down"
    MAINTENANCE = "maintenance"
    PAUSED = "paused"
    UNKNOWN = "no recent data"


_OF_SITES = {
    OperationalState.HELD: PublicState.PAUSED,
    OperationalState.MAINTENANCE: PublicState.MAINTENANCE,
    OperationalState.DOWN: PublicState.DOWN,
    OperationalState.UNKNOWN: PublicState.UNKNOWN,
}


@dataclass(frozen=True)
class PublicIncident:
    """An open incident at a public site."""

    cause: str
    since: datetime


@dataclass(frozen=True)
class PublicSite:
    """A public site; None for its state, days or incidents: they could not be read.

    Attributes:
        days: the last ``SHOWN_DAYS`` days (UTC), oldest first; None for a day that was not computed.
        incidents: the open incidents at it.
    """

    name: str
    title: str
    state: PublicState | None
    days: Sequence[SiteDay | None] | None
    incidents: Sequence[PublicIncident] | None

    @property
    def part(self) -> str:
        """The name of the part of an answer that shows the site."""
        return f"{SITE_PART}:{self.name}"

    @property
    def availability(self) -> float | None:
        """The share of the known time of these days in which it was up; None if unknown."""
        known = self.known_seconds
        return sum(day.up_seconds for day in self.days or () if day) / known if known else None

    @property
    def known_seconds(self) -> int:
        """How much of the time of these days is known."""
        known = (day for day in self.days or () if day)
        return sum(day.up_seconds + day.scheduled_seconds + day.down_seconds for day in known)

    @property
    def is_known_throughout(self) -> bool:
        """Whether at least 99 % of these days are known; the last one has not ended yet."""
        return self.known_seconds >= _NEARLY_ALL * (SHOWN_DAYS - 1) * _DAY_SECONDS


@dataclass(frozen=True)
class PublicSuite:
    """A public suite."""

    name: str
    title: str
    state: PublicState


@dataclass(frozen=True)
class PublicStatus:
    """All that is public, None if it could not be read; *first_day*: the first of the days of each site."""

    sites: Sequence[PublicSite] | None
    suites: Sequence[PublicSuite] | None
    first_day: date


def public_status(now: datetime, compute: Compute | None = None) -> PublicStatus:
    """Return what is public at *now*; a constant number of queries, no history is read.

    With *compute*, what cannot be read is None; without, an exception passes.
    """
    compute = compute or _unguarded
    first_day = now.astimezone(UTC).date() - timedelta(days=SHOWN_DAYS - 1)
    sites = compute("sites", lambda: list(Site.objects.public().order_by("sort_name")))
    return PublicStatus(
        sites=None if sites is None else _sites(sites, first_day, now, compute),
        suites=compute("suites", lambda: _suites(now)),
        first_day=first_day,
    )


def _unguarded(_part: str, function: Callable[[], Computed], /) -> Computed | None:
    return function()


def _sites(sites: Sequence[Site], first_day: date, now: datetime, compute: Compute) -> list[PublicSite]:
    states = compute("states", lambda: public_site_states([site.name for site in sites], now))
    days = compute("availability", lambda: _days(sites, first_day))
    incidents = compute("incidents", lambda: _incidents(sites))

    def shown(site: Site) -> PublicSite:
        has_incident = None if incidents is None else site.name in incidents
        return PublicSite(
            name=site.name,
            title=site.title or site.name,
            state=None if states is None else site_state(states[site.name], has_incident=has_incident),
            days=None if days is None else days[site.pk],
            incidents=None if incidents is None else incidents.get(site.name, ()),
        )

    return [
        compute(f"{SITE_PART}:{site.name}", partial(shown, site))
        or PublicSite(site.name, site.title or site.name, None, None, None)
        for site in sites
    ]


def site_state(current: CurrentState, *, has_incident: bool | None = False) -> PublicState | None:
    """Return what the public reads of *current*; None if that depends on *has_incident*, and this is None.

    A site is degraded if it is up while a resource fails or an incident is open there.
    """
    if current.state != OperationalState.UP:
        return _OF_SITES[current.state]
    if current.reasons or has_incident:
        return PublicState.DEGRADED
    return None if has_incident is None else PublicState.OPERATIONAL


def suite_state(passed: int, failed: int) -> PublicState:
    """Return the state of a suite by the numbers of its series whose current results passed and failed."""
    if not failed:
        return PublicState.OPERATIONAL if passed else PublicState.UNKNOWN
    return PublicState.DEGRADED if passed else PublicState.DOWN


def _days(sites: Sequence[Site], first_day: date) -> dict[int, list[SiteDay | None]]:
    rows = SiteDay.objects.of_sites().filter(site__in=sites, day__gte=first_day)
    computed = {(row.site_id, row.day): row for row in rows.exclude(computed_at=None)}
    dates = [first_day + timedelta(days=number) for number in range(SHOWN_DAYS)]
    return {site.pk: [computed.get((site.pk, day)) for day in dates] for site in sites}


def _incidents(sites: Sequence[Site]) -> Mapping[str, Sequence[PublicIncident]]:
    """Return the open incidents at *sites*, by name of the site, of series that every user may see."""
    of_all = IncidentSeries.objects.filter(incident=OuterRef("pk"), until=None)
    of_all = of_all.filter(series__in=Series.objects.open_to_all().order_by().values("pk"))
    open_here = Incident.objects.open().filter(kind=AT, name__in=[site.name for site in sites])
    found: dict[str, list[PublicIncident]] = defaultdict(list)
    for incident in open_here.filter(Exists(of_all)).select_related("signature").order_by("since", "pk"):
        signature = incident.signature
        is_shipped = signature is not None and signature.origin == Origin.SHIPPED
        cause = signature.title if signature and is_shipped else OTHER_CAUSE
        found[incident.name].append(PublicIncident(cause, incident.since))
    return found


def _suites(now: datetime) -> list[PublicSuite]:
    suites = list(Suite.objects.public().order_by("sort_name"))
    if not suites:
        return []
    source = Series.objects.filter(suite__in=suites, enabled=True)
    rows = latest.series_columns(source, {"suite": ("integer", "suite_id"), **allowed_ages.COLUMNS})
    group = latest.positions_of(rows["suite"], np.array([suite.pk for suite in suites]))
    ages = allowed_ages.allowed_ages(rows)
    is_imported = ages == allowed_ages.NEVER_CURRENT
    states = series_states(source, rows["series"], group, now, is_imported=is_imported)
    is_current = ~stale_rows(states, ages, now)
    passed = np.bincount(group[is_current & (states.state == b"p")], minlength=len(suites))
    failed = np.bincount(group[is_current & np.isin(states.state, BY_GRID)], minlength=len(suites))
    return [
        PublicSuite(suite.name, suite.title or suite.name, suite_state(int(passed[at]), int(failed[at])))
        for at, suite in enumerate(suites)
    ]
