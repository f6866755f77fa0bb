"""Compute the availability of many sites and days at once, from the ledger, by versions of profiles.

The number of statements and of array operations does not depend on the number of sites, days and series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np

from monitor.analysis.attribution.suspicion import suspicion_periods
from monitor.analysis.availability import results_sql, timelines
from monitor.analysis.availability.profiles import CountedSeries, TestedService, rules_of, services_of
from monitor.analysis.availability.results_sql import NO_RESULT, PASSED, Slots
from monitor.analysis.availability.timelines import (
    Integers,
    StatusSeconds,
    Timelines,
    TimelineStatus,
    status_seconds,
)
from monitor.models import Binding, ProfileVersion, Series, Site
from monitor.runs.maintenance.windows import planned_windows

if TYPE_CHECKING:
    from monitor.runs.maintenance.times import OpenWindow

DAY = timedelta(days=1)
# One missed run is tolerated: a result is valid until the second slot after its own. Where there is none
# within three days, because the series runs rarely or on request, it is valid for a day.
LONGEST_VALID = timedelta(days=3)
_LOOK_AHEAD = LONGEST_VALID - DAY  # a later second slot makes no difference to the period
_LONGEST_SECONDS, _DAY_SECONDS = (int(length.total_seconds()) for length in (LONGEST_VALID, DAY))
_MICROS = 1_000_000
_SeriesAtSites = tuple[CountedSeries, set[int]]  # with the keys of the sites


@dataclass(frozen=True)
class WantedDay:
    """A day of a site (its key), and the version of the profile to compute it by."""

    site: int
    day: date
    version: ProfileVersion


@dataclass(frozen=True)
class ComputedDay:
    """The availability of a site on a day, counted *until* the end of the day or the present.

    *services* has the seconds of each service that counted on the day, without maintenance.
    """

    wanted: WantedDay
    until: datetime
    seconds: StatusSeconds
    services: Mapping[str, StatusSeconds]


@dataclass(frozen=True)
class _Members:
    """Series that test services of sites. Each array has a number for each member.

    Attributes:
        series, site: the keys of the series and of the site that it tests.
        service: the number of the service.
    """

    series: Integers
    site: Integers
    service: Integers


@dataclass
class _Services:
    """The services of all units; a unit is a site (its key) with a version of a profile."""

    units: list[tuple[int, ProfileVersion]]
    names: list[str]
    unit_of: list[int]
    needs_all: list[bool]
    members: list[tuple[int, int, int]]

    def as_arrays(self) -> _Members:
        series, site, service = np.array(self.members, np.int64).reshape(-1, 3).T
        return _Members(series, site, service)


def compute(wanted: Collection[WantedDay], now: datetime) -> list[ComputedDay]:
    """Return the availability of each of the *wanted* days, none of which begins after *now*."""
    if not wanted:
        return []
    days = _days(wanted)
    edges = [min(_midnight(day), now) for day in (*days, days[-1] + DAY)]
    seconds = np.array([int(edge.timestamp()) for edge in edges], np.int64)
    if seconds[0] == seconds[-1]:  # midnight
        return [ComputedDay(each, edges[-1], StatusSeconds(0, 0, 0, 0), {}) for each in wanted]
    services = _services(wanted)
    members = services.as_arrays()
    first, last = edges[0] - LONGEST_VALID, edges[-1] + _LOOK_AHEAD
    slots = results_sql.slots_of(np.unique(members.series).tolist(), first, last)
    slots = _without_failures(slots, suspicion_periods(first, last))
    tested = _combined(slots, members, services, seconds)
    needs_all = np.array(
        [rules_of(version.rules or {}).needs == "all" for _, version in services.units], np.bool_
    )
    counted = timelines.leave_out_unknown(tested, seconds)
    whole = timelines.combine(counted, np.array(services.unit_of, np.int64), needs_all)
    shown = timelines.with_maintenance(whole, _maintenance(services.units, edges[0], edges[-1], whole))
    of_units, of_services = timelines.account(shown, seconds), timelines.account(tested, seconds)
    return list(_of_wanted(wanted, services, days, edges, of_units, of_services))


def _of_wanted(
    wanted: Iterable[WantedDay],
    services: _Services,
    days: Sequence[date],
    edges: Sequence[datetime],
    of_units: Integers,
    of_services: Integers,
) -> Iterable[ComputedDay]:
    """Yield each wanted day, given the seconds of units and services in each of *days*."""
    numbers = {(site, version.pk): number for number, (site, version) in enumerate(services.units)}
    own_services = defaultdict(list)
    for service, unit in enumerate(services.unit_of):
        own_services[unit].append(service)
    for each in wanted:
        unit, position = numbers[each.site, each.version.pk], days.index(each.day)
        yield ComputedDay(
            each,
            edges[position + 1],
            status_seconds(of_units[unit, position]),
            dict(_known(services.names, own_services[unit], of_services[:, position])),
        )


def _days(wanted: Iterable[WantedDay]) -> list[date]:
    """Return all days from the first to the last wanted one."""
    named = {each.day for each in wanted}
    first = min(named)
    return [first + number * DAY for number in range((max(named) - first).days + 1)]


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _known(
    names: Sequence[str], services: Iterable[int], seconds: Integers
) -> Iterable[tuple[str, StatusSeconds]]:
    """Yield (name, seconds) of each of *services* of which something is known; others did not count."""
    for service in services:
        own = status_seconds(seconds[service])
        if own.up or own.down:
            yield names[service], own


def _services(wanted: Iterable[WantedDay]) -> _Services:
    by_version: dict[int, tuple[ProfileVersion, set[int]]] = {}
    for each in wanted:
        by_version.setdefault(each.version.pk, (each.version, set()))[1].add(each.site)
    series = _series()
    services = _Services([], [], [], [], [])
    for version, sites in by_version.values():
        by_site = _tested_services(version, sites, series)
        for site in sorted(sites):
            for service in by_site[site]:
                number = len(services.names)
                services.names.append(service.name)
                services.unit_of.append(len(services.units))
                services.needs_all.append(service.needs == "all")
                services.members.extend((key, site, number) for key in service.series)
            services.units.append((site, version))
    return services


def _tested_services(
    version: ProfileVersion, sites: set[int], series: Mapping[int, _SeriesAtSites]
) -> Mapping[int, list[TestedService]]:
    """Return the services of each of *sites*. Rules are applied once, then shared out among the sites."""
    by_site: dict[int, list[TestedService]] = defaultdict(list)
    at_sites = [each for each, keys in series.values() if not keys.isdisjoint(sites)]
    for service in services_of(rules_of(version.rules or {}), at_sites):
        own: dict[int, list[int]] = defaultdict(list)
        for key in service.series:
            for site in series[key][1] & sites:
                own[site].append(key)
        for site, keys in own.items():
            by_site[site].append(TestedService(service.name, service.needs, keys))
    return by_site


def _series() -> dict[int, _SeriesAtSites]:
    """Return all series by key, each with the keys of the sites that it is bound to."""
    names = dict(Site.objects.values_list("pk", "name"))
    sites: dict[int, set[int]] = defaultdict(set)
    for key, site in Binding.objects.order_by().values_list("series_id", "resource__site_id").distinct():
        sites[key].add(site)
    rows = Series.objects.order_by("sort_name").values_list(
        "pk", "name", "suite__name", "probe", "reporter__name"
    )
    return {
        row[0]: (CountedSeries(*row, frozenset(names[site] for site in sites[row[0]])), sites[row[0]])
        for row in rows
    }


def _combined(slots: Slots, members: _Members, services: _Services, edges: Integers) -> Timelines:
    """Return the timeline of each service from those of the series that test it."""
    of_series = _of_members(slots, members, edges)
    counted = timelines.leave_out_unknown(of_series, edges)
    return timelines.combine(counted, members.service, np.array(services.needs_all, np.bool_))


def _without_failures(slots: Slots, periods: Iterable[tuple[datetime, datetime]]) -> Slots:
    """Return *slots* without the failures in *periods*, which are sorted and disjoint: as if not run."""
    edges = np.array([round(edge.timestamp() * _MICROS) for period in periods for edge in period], np.int64)
    is_within = np.searchsorted(edges, slots.times, side="right") % 2 == 1
    return replace(slots, codes=np.where(is_within & (slots.codes != PASSED), NO_RESULT, slots.codes))


def _of_members(slots: Slots, members: _Members, edges: Integers) -> Timelines:
    """Return the timeline of each member: the results of its series that say something about its site."""
    seconds = slots.times // _MICROS
    valid_until = np.maximum(_valid_until(slots, seconds), seconds + 1)
    has_result = slots.codes != NO_RESULT
    series, seconds, codes, valid_until = (
        each[has_result] for each in (slots.series, seconds, slots.codes, valid_until)
    )
    first = np.searchsorted(series, members.series, side="left")
    lengths = np.searchsorted(series, members.series, side="right") - first
    owners = np.repeat(np.arange(len(first)), lengths)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = np.repeat(first, lengths) + within
    is_about = (codes[rows] == PASSED) | (codes[rows] == members.site[owners])
    owners, rows = owners[is_about], rows[is_about]
    return timelines.of_results(
        owners,
        seconds[rows],
        codes[rows] == PASSED,
        valid_until[rows],
        count=len(members.series),
        start=int(edges[0]),
        end=int(edges[-1]),
    )


def _valid_until(slots: Slots, seconds: Integers) -> Integers:
    """Return until when a result of each slot is valid, whatever becomes of the slots after it."""
    valid_until = seconds + _DAY_SECONDS
    second_next = seconds[2:]
    is_near = (slots.series[2:] == slots.series[:-2]) & (second_next - seconds[:-2] <= _LONGEST_SECONDS)
    valid_until[:-2][is_near] = second_next[is_near]
    return valid_until


def _maintenance(
    units: Sequence[tuple[int, ProfileVersion]], since: datetime, until: datetime, whole: Timelines
) -> Timelines:
    """Return the timelines of units with scheduled downtime during the windows of their sites."""
    names = dict(Site.objects.filter(pk__in={site for site, _ in units}).values_list("pk", "name"))
    units_by_site: dict[str, list[int]] = defaultdict(list)
    for number, (site, _) in enumerate(units):
        units_by_site[names.get(site, "")].append(number)
    periods = [
        (unit, int(window.starts_at.timestamp()), int(window.ends_at.timestamp()))
        for window in planned_windows(since, until)
        for unit in _units_in(window, units_by_site)
    ]
    owners, begins, ends = np.array(periods, np.int64).reshape(-1, 3).T
    return timelines.of_periods(
        owners,
        begins,
        ends,
        TimelineStatus.SCHEDULED,
        TimelineStatus.UP,
        count=len(units),
        start=whole.start,
        end=whole.end,
    )


def _units_in(window: OpenWindow, units_by_site: Mapping[str, Sequence[int]]) -> Iterable[int]:
    sites = window.sites or units_by_site
    return (unit for site in sites for unit in units_by_site.get(site, ()))
