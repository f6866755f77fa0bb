"""What visitors see without a login: the states of the sites and suites that are marked public.

Names and titles of these sites and suites, states in words, availability by day, and causes of open incidents
by the titles of shipped signatures. No series, host, user or reason is named, for these may be internal.
Runs of suites with viewers do not count for the states of sites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

import numpy as np
from django.db.models import Exists, OuterRef

from monitor.availability.site_states import CurrentState, OperationalState, public_site_states
from monitor.failures.incident_causes import AT
from monitor.models import Incident, IncidentSeries, Series, Site, SiteDay, Suite
from monitor.models.failure_signature import Origin
from monitor.overview import allowed_ages, latest
from monitor.overview.series_states import BY_GRID, series_states, stale_rows

SHOWN_DAYS = 90
_DAY_SECONDS = 86400
_NEARLY_ALL = 0.99
OTHER_CAUSE = "Failures"  # of a signature that users wrote: its title may name hosts


class PublicState(StrEnum):
    """The state of a public site or suite."""

    OPERATIONAL = "operational"
    DEGRADED = "degraded"  # some resources or series fail, others work
    DOWN = "down"
    MAINTENANCE = "maintenance"
    PAUSED = "paused"
    UNKNOWN = "no recent data"


_OF_SITES = {
    OperationalState.UP: PublicState.OPERATIONAL,
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
    """A public site.

    Attributes:
        days: the last ``SHOWN_DAYS`` days (UTC), oldest first; None for a day that was not computed.
        availability: the share of the known time of these days in which it was up; None if unknown.
        known_seconds: how much of the time of these days is known.
        incidents: the open incidents at it.
    """

    name: str
    title: str
    state: PublicState
    days: Sequence[SiteDay | None]
    availability: float | None
    known_seconds: int
    incidents: Sequence[PublicIncident]

    @property
    def is_known_throughout(self) -> bool:
        """Whether at least 99 % of these days are known; the last one has not ended yet."""
        return self.known_seconds >= _NEARLY_ALL * (len(self.days) - 1) * _DAY_SECONDS


@dataclass(frozen=True)
class PublicSuite:
    """A public suite."""

    name: str
    title: str
    state: PublicState


@dataclass(frozen=True)
class PublicStatus:
    """All that is public; *first_day* is the first of the days of each site."""

    sites: Sequence[PublicSite]
    suites: Sequence[PublicSuite]
    first_day: date


def public_status(now: datetime) -> PublicStatus:
    """Return what is public at *now*; a constant number of queries, no history is read."""
    first_day = now.astimezone(UTC).date() - timedelta(days=SHOWN_DAYS - 1)
    sites = list(Site.objects.public().order_by("sort_name"))
    states = public_site_states([site.name for site in sites], now)
    days, incidents = _days(sites, first_day), _incidents(sites)
    return PublicStatus(
        sites=[
            PublicSite(
                name=site.name,
                title=site.title or site.name,
                state=site_state(states[site.name], has_incident=site.name in incidents),
                days=days[site.pk],
                availability=_availability(days[site.pk]),
                known_seconds=_known_seconds(days[site.pk]),
                incidents=incidents.get(site.name, ()),
            )
            for site in sites
        ],
        suites=_suites(now),
        first_day=first_day,
    )


def site_state(current: CurrentState, *, has_incident: bool = False) -> PublicState:
    """Return what the public reads of *current*.

    A site is degraded if it is up while a resource fails or an incident is open there.
    """
    if current.state == OperationalState.UP and (current.reasons or has_incident):
        return PublicState.DEGRADED
    return _OF_SITES[current.state]


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


def _availability(days: Sequence[SiteDay | None]) -> float | None:
    known = _known_seconds(days)
    return sum(day.up_seconds for day in days if day) / known if known else None


def _known_seconds(days: Sequence[SiteDay | None]) -> int:
    return sum(day.up_seconds + day.scheduled_seconds + day.down_seconds for day in days if day)


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
