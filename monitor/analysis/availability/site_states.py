"""The present state of sites and resources: up, held, in maintenance, down, or unknown.

A site is in maintenance while a window is open there, held while a hold of the site is in force, and down
when the newest runs failed at every resource of it about which anything is known. Of several states, the
first in this order applies: failures during maintenance are expected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from monitor.analysis.availability.resource_results_sql import (
    ResourceResults,
    failing_resources,
    known_resources,
    resource_results,
)
from monitor.models import Hold, Resource, Site
from monitor.models.hold import HoldKind
from monitor.models.natural_order import sort_name
from monitor.runs.ledger.holds import describe_hold, last_ends_at_sites
from monitor.runs.maintenance import windows as maintenance

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

    from monitor.models.site import ResourceQuerySet, SiteQuerySet

Place = TypeVar("Place", Site, Resource)
_LEAST_READ = 100  # sites or resources in a batch


class OperationalState(StrEnum):
    """The state of a site or of a resource."""

    UP = "up"  # runs may start, and do not fail there
    HELD = "held"  # a user paused or drained the site
    MAINTENANCE = "maintenance"  # a maintenance window is open
    DOWN = "down"  # the newest runs failed there
    UNKNOWN = "unknown"  # no run has passed or failed for two days


_FIRST = (OperationalState.MAINTENANCE, OperationalState.HELD, OperationalState.DOWN)


@dataclass(frozen=True)
class StateReason:
    """Why something is not up: *state* is what it causes; *until* is None if the end is not known.

    *resource* is the resource that fails; empty if the reason applies to the whole site.
    """

    state: OperationalState
    since: datetime
    until: datetime | None
    resource: str
    text: str


@dataclass(frozen=True)
class CurrentState:
    """The state of a site or of a resource.

    Attributes:
        since: when the first reason of this *state* began. Of ``up``: nothing has failed there, and there was
            neither a hold nor maintenance, since then; None if no such thing is known. None of ``unknown``.
        until: when the state will end by itself; None if that is not known.
        reasons: everything that prevents runs. A site that is up has reasons if one of its resources fails.
    """

    state: OperationalState
    since: datetime | None
    until: datetime | None
    reasons: Sequence[StateReason]


@dataclass(frozen=True)
class _Evidence:
    """What is known of the sites of some resources at *now*.

    Attributes:
        closures: holds and open maintenance windows by name of the site.
        reopened: when the last of them ended, by name of the site.
        results: results of runs by name of the resource.
        resources: the names of the resources of each site, by name.
    """

    now: datetime
    closures: Mapping[str, Sequence[StateReason]]
    reopened: Mapping[str, datetime]
    results: Mapping[str, ResourceResults]
    resources: Mapping[str, Sequence[str]]


def site_states(
    user: AbstractBaseUser | AnonymousUser, sites: Collection[str], now: datetime
) -> dict[str, CurrentState]:
    """Return the state of each of *sites* at *now*, by name, from the runs that *user* may see.

    A constant number of queries; no history is read. *user* must be logged in and active.
    """
    evidence = _evidence(user, Resource.objects.filter(site__name__in=sites), sites, now)
    return {site: _state(evidence, site, evidence.resources.get(site, ())) for site in sites}


def states_at_site(
    user: AbstractBaseUser | AnonymousUser, site: str, now: datetime
) -> tuple[CurrentState, dict[str, CurrentState]]:
    """Return the states of *site* and, by name, of its resources, as ``site_states``, from the same reads."""
    evidence = _evidence(user, Resource.objects.filter(site__name=site), [site], now)
    resources = evidence.resources.get(site, ())
    return _state(evidence, site, resources), {name: _state(evidence, site, (name,)) for name in resources}


def operational_states(
    user: AbstractBaseUser | AnonymousUser, sites: Collection[str], now: datetime
) -> dict[str, OperationalState]:
    """Return the states of ``site_states`` without their times and reasons: cheap for all sites of a grid.

    Of each resource only the series that fail are read, and one that has a result.
    """
    by_site = _resources_by_site(Resource.objects.filter(site__name__in=sites))
    names = [name for each in by_site.values() for name in each]
    failing = failing_resources(user, names, now)
    working = known_resources(user, names, now) - failing
    closures = closures_at(sites, now, now)
    states = {}
    for site in sites:
        own = by_site.get(site, ())
        causes = {reason.state for reason in closures.get(site, ())}
        works = any(name in working for name in own)
        if not works and any(name in failing for name in own):
            causes.add(OperationalState.DOWN)
        best = OperationalState.UP if works else OperationalState.UNKNOWN
        states[site] = next((state for state in _FIRST if state in causes), best)
    return states


def public_site_states(sites: Collection[str], now: datetime) -> dict[str, CurrentState]:
    """Return the state of each of *sites* at *now*, by name, from the runs of suites without viewers."""
    evidence = _evidence(None, Resource.objects.filter(site__name__in=sites), sites, now)
    return {site: _state(evidence, site, evidence.resources.get(site, ())) for site in sites}


def resource_states(
    user: AbstractBaseUser | AnonymousUser, resources: Collection[str], now: datetime
) -> dict[str, CurrentState]:
    """Return the state of each of *resources* at *now*, by name, as ``site_states``; omit unknown names."""
    evidence = _evidence(user, Resource.objects.filter(name__in=resources), (), now)
    return {
        name: _state(evidence, site, (name,)) for site, names in evidence.resources.items() for name in names
    }


def closures_at(sites: Collection[str], at: datetime, now: datetime) -> dict[str, list[StateReason]]:
    """Return the holds of *sites*, as known *now*, and the maintenance there, that are in force at *at*.

    The reasons are by name of the site; sites that are open are absent.
    """
    closures: dict[str, list[StateReason]] = {}
    sites = frozenset(sites)
    for window in maintenance.open_windows(at):
        for site in window.sites.intersection(sites) if window.sites else sites:
            text = f"the site {site} is closed, {window.reason}"
            closures.setdefault(site, []).append(
                StateReason(OperationalState.MAINTENANCE, window.starts_at, window.ends_at, "", text)
            )
    for hold in Hold.objects.at(now).exclude(until__lte=at).filter(kind=HoldKind.SITE):
        if hold.name not in sites:  # there may be hundreds of sites, and few holds
            continue
        text = f"the site {hold.name} is {describe_hold(hold)}"
        closures.setdefault(hold.name, []).append(
            StateReason(OperationalState.HELD, hold.began_at, hold.until, "", text)
        )
    return closures


def _evidence(
    user: AbstractBaseUser | AnonymousUser | None,
    resources: ResourceQuerySet,
    sites: Collection[str],
    now: datetime,
) -> _Evidence:
    by_site = _resources_by_site(resources)
    names = {*sites, *by_site}
    closures = closures_at(names, now, now)
    return _Evidence(
        now=now,
        closures=closures,
        reopened=_latest([last_ends_at_sites(names, now), maintenance.last_ends(names, now)]),
        results=resource_results(user, [name for each in by_site.values() for name in each]),
        resources=by_site,
    )


def _resources_by_site(resources: ResourceQuerySet) -> dict[str, list[str]]:
    by_site: dict[str, list[str]] = {}
    for name, site in resources.order_by("sort_name").values_list("name", "site__name"):
        by_site.setdefault(site, []).append(name)
    return by_site


def _latest(ends: Iterable[Mapping[str, datetime]]) -> dict[str, datetime]:
    latest: dict[str, datetime] = {}
    for by_name in ends:
        latest |= {name: max(end, latest.get(name, end)) for name, end in by_name.items()}
    return latest


def _state(evidence: _Evidence, site: str, resources: Sequence[str]) -> CurrentState:
    """Return the state of a part of *site* that consists of *resources*."""
    results = [evidence.results[name] for name in resources if name in evidence.results]
    failing = [result for result in results if result.is_failing(evidence.now)]
    works = any(result.is_known(evidence.now) for result in results if result not in failing)
    reasons = [*evidence.closures.get(site, ()), *(_failure(result) for result in failing)]
    causes = {reason.state for reason in reasons} - ({OperationalState.DOWN} if works else set())
    for state in _FIRST:
        if state in causes:
            return _caused(state, reasons)
    if not works:
        return CurrentState(OperationalState.UNKNOWN, None, None, reasons)
    times = [evidence.reopened.get(site), *(result.failed_at for result in results)]
    since = max((time for time in times if time is not None), default=None)
    return CurrentState(OperationalState.UP, since, None, reasons)


def _caused(state: OperationalState, reasons: Sequence[StateReason]) -> CurrentState:
    """Return the *state* that some of *reasons* cause.

    A part is down since the last of its resources failed; closures add up from the first.
    """
    causes = [reason for reason in reasons if reason.state == state]
    begins = [reason.since for reason in causes]
    ends = [reason.until for reason in causes]
    since = max(begins) if state == OperationalState.DOWN else min(begins)
    until = None if None in ends else max(end for end in ends if end is not None)
    return CurrentState(state, since, until, reasons)


def _failure(result: ResourceResults) -> StateReason:
    if result.failing_since is None:
        raise ValueError("expected a resource that fails")
    return StateReason(OperationalState.DOWN, result.failing_since, None, result.name, result.words)


def sites_with_states(
    user: AbstractBaseUser | AnonymousUser,
    sites: SiteQuerySet,
    now: datetime,
    *,
    after: str,
    at_most: int,
    state: OperationalState | None = None,
) -> list[tuple[Site, CurrentState]]:
    """Return the first *at_most* of *sites* whose names sort after *after*, in *state* if given."""
    return _with_states(sites, lambda names: site_states(user, names, now), after, at_most, state)


def resources_with_states(
    user: AbstractBaseUser | AnonymousUser,
    resources: ResourceQuerySet,
    now: datetime,
    *,
    after: str,
    at_most: int,
    state: OperationalState | None = None,
) -> list[tuple[Resource, CurrentState]]:
    """Return the first *at_most* of *resources* whose names sort after *after*, in *state* if given."""
    return _with_states(resources, lambda names: resource_states(user, names, now), after, at_most, state)


def _with_states(
    rows: QuerySet[Place],
    states_of: Callable[[Collection[str]], Mapping[str, CurrentState]],
    after: str,
    at_most: int,
    state: OperationalState | None,
) -> list[tuple[Place, CurrentState]]:
    """Read *rows* by name in batches, until *at_most* are in *state*."""
    listed: list[tuple[Place, CurrentState]] = []
    while len(listed) < at_most:
        batch = list(
            rows.filter(sort_name__gt=sort_name(after)).order_by("sort_name")[: max(at_most, _LEAST_READ)]
        )
        states = states_of([row.name for row in batch])
        found = [(row, states[row.name]) for row in batch if row.name in states]  # others were deleted since
        listed += [(row, current) for row, current in found if state in {None, current.state}]
        if len(batch) < max(at_most, _LEAST_READ):
            break
        after = batch[-1].name
    return listed[:at_most]
