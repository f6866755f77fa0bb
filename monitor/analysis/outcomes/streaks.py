"""Consecutive failures: how often each series failed since its last passed run, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.analysis.outcomes.streaks_sql import MOST_FAILURES, streak_rows
from monitor.models import IncidentSeries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from monitor.models.series import SeriesQuerySet

LOOK_BACK = timedelta(days=90)
_OF_INCIDENT = ("incident_id", "series_id", "series__name")


@dataclass(frozen=True)
class FailureStreak:
    """The *count* consecutive failures of *series*: the slots of the first and of the latest one."""

    series: str
    count: int
    began_at: datetime
    latest_at: datetime

    @property
    def text(self) -> str:
        """``16 consecutive failures``; a streak that is longer than what is counted has a plus."""
        more = "+" if self.count == MOST_FAILURES else ""
        return f"{self.count}{more} consecutive failure{'' if self.count == 1 else 's'}"


def streaks(series: Mapping[int, str], now: datetime) -> dict[int, FailureStreak]:
    """Return by key the streak of each of *series*, names by key, that fails at *now*."""
    rows = streak_rows(sorted(series), now - LOOK_BACK, now)
    return {
        key: FailureStreak(series[key], count, began_at, latest_at)
        for key, count, began_at, latest_at in rows
    }


def incident_streaks(
    incidents: Collection[int], visible: SeriesQuerySet, now: datetime
) -> dict[int, FailureStreak]:
    """Return by incident the streak of the *visible* series that it has affected longest."""
    rows = IncidentSeries.objects.filter(incident__in=incidents, until=None, series__in=visible)
    first = rows.order_by("incident_id", "since", "series_id").distinct("incident_id")
    series_of = {incident: (key, name) for incident, key, name in first.values_list(*_OF_INCIDENT)}
    found = streaks(dict(series_of.values()), now)
    return {incident: found[key] for incident, (key, _) in series_of.items() if key in found}


def longest(found: Iterable[FailureStreak]) -> FailureStreak | None:
    """Return the streak with most failures; None if there is none."""
    return max(found, key=lambda each: each.count, default=None)
