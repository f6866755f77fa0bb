"""The availability of a site, day by day, from the results of the series that use it.

By the default profile a site needs every probe that its series run (AND), and of the series of one probe one
that passes (OR): another path to the same site may be broken elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby

import numpy as np

from monitor.failures import results_sql
from monitor.failures.availability import (
    StatusSeconds,
    Timeline,
    TimelineStatus,
    account,
    all_of,
    any_of,
    constant,
    of_results,
    with_maintenance,
)
from monitor.failures.results_sql import SeriesResult
from monitor.ledger.maintenance import planned_windows
from monitor.models import Resource, Series, Site

PROFILE = "default-1"  # the name and version of the only profile
_DAY = timedelta(days=1)
_LOOK_BACK = timedelta(days=2)  # results before a period count in it as long as they are valid


@dataclass(frozen=True)
class DayAvailability:
    day: date
    seconds: StatusSeconds


@dataclass(frozen=True)
class SiteAvailability:
    """The availability of a site in a period.

    Attributes:
        days: each day of the period (UTC); the last one may be incomplete.
        total: the seconds of the whole period.
        by_probe: the seconds of each probe that the profile needs, without maintenance.
    """

    site: str
    days: Sequence[DayAvailability]
    total: StatusSeconds
    by_probe: Mapping[str, StatusSeconds]


def availability_of(site: Site, first: date, end: datetime) -> SiteAvailability:
    """Return the availability of *site* from the beginning of the day *first* (UTC) until *end*."""
    start = datetime.combine(first, time(), UTC)
    probes = dict(Series.objects.filter(bindings__resource__site=site).values_list("pk", "probe"))
    resources = list(Resource.objects.filter(site=site).values_list("name", flat=True))
    results = results_sql.of_site(site.name, probes, resources, start - _LOOK_BACK, end)
    period = int(start.timestamp()), int(end.timestamp())
    services = _services(results, probes, *period)
    windows = [
        (int(window.starts_at.timestamp()), int(window.ends_at.timestamp()))
        for window in planned_windows(start, end)
        if window.covers({site.name})
    ]
    whole = all_of(list(services.values())) if services else constant(TimelineStatus.UNKNOWN, *period)
    shown = with_maintenance(whole, windows)
    return SiteAvailability(
        site=site.name,
        days=list(_by_day(shown, start, end)),
        total=account(shown, *period),
        by_probe={probe: account(service, *period) for probe, service in services.items()},
    )


def _services(
    results: Iterable[SeriesResult], probes: Mapping[int, str], start: int, end: int
) -> dict[str, Timeline]:
    """Return the timeline of each probe that has a result, sorted by name."""
    by_probe: dict[str, list[Timeline]] = defaultdict(list)
    for series, group in groupby(results, key=lambda result: result.series_id):
        own = list(group)
        slots = np.array([int(result.slot.timestamp()) for result in own], np.int64)
        has_passed = np.array([result.has_passed for result in own], bool)
        valid_until = np.array([int(result.valid_until.timestamp()) for result in own], np.int64)
        is_last = np.append(slots[1:] != slots[:-1], True)  # requested runs may share a second
        timeline = of_results(
            slots[is_last],
            has_passed[is_last],
            np.maximum(valid_until[is_last], slots[is_last] + 1),
            start=start,
            end=end,
        )
        by_probe[probes[series]].append(timeline)
    return {probe: any_of(timelines) for probe, timelines in sorted(by_probe.items())}


def _by_day(shown: Timeline, start: datetime, end: datetime) -> Iterable[DayAvailability]:
    day = start
    while day < end:
        until = min(day + _DAY, end)
        yield DayAvailability(day.date(), account(shown, int(day.timestamp()), int(until.timestamp())))
        day += _DAY
