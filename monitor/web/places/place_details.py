"""What the pages of sites and resources share: forecasts of applications, and durations of stages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.analysis.forecasts.defaults import HEADLINE, LEVEL
from monitor.analysis.performance.stage_durations_sql import StageDuration, stage_durations
from monitor.depot.series.kinds import of_kind
from monitor.depot.series.segments import current_metrics
from monitor.models import ForecastState, Series, SuccessState
from monitor.models.series import Measures

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

MOST_APPLICATIONS = 20
LONGEST_DURATIONS = timedelta(days=366)  # a longer time range shows its last year


@dataclass(frozen=True)
class ApplicationForecast:
    """The forecast of the next run of an application series, in seconds.

    Attributes:
        median, lower, upper: None while there is no forecast; the latter bound the interval of *level*.
        probability: that the next run passes; None if it is unknown.
    """

    series: str
    probe: str
    median: float | None = None
    lower: float | None = None
    upper: float | None = None
    level: float = LEVEL
    probability: float | None = None


def application_forecasts(series: SeriesQuerySet) -> list[ApplicationForecast]:
    """Return the forecasts of the applications among *series*, the first ``MOST_APPLICATIONS`` by name."""
    applications = series.filter(of_kind(Measures.APPLICATION), enabled=True)
    rows = list(applications.order_by("sort_name").only("name", "probe")[:MOST_APPLICATIONS])
    if not rows:  # as at most sites
        return []
    shown = Series.objects.filter(pk__in=[row.pk for row in rows])
    metrics = dict(current_metrics(shown).filter(name=HEADLINE).values_list("pk", "segment__series"))
    states = ForecastState.objects.filter(metric__in=metrics, forecast__isnull=False)
    forecasts = {metrics[each.metric_id]: each.forecast for each in states.select_related("forecast")}
    chances = dict(SuccessState.objects.filter(series__in=shown).values_list("series", "probability"))
    return [
        ApplicationForecast(
            series=row.name,
            probe=row.probe,
            median=getattr(forecasts.get(row.pk), "median", None),
            lower=getattr(forecasts.get(row.pk), "lower", None),
            upper=getattr(forecasts.get(row.pk), "upper", None),
            probability=chances.get(row.pk),
        )
        for row in rows
    ]


def durations_in(series: Collection[int], start: datetime | None, end: datetime) -> list[StageDuration]:
    """Return the stages of *series* (primary keys) in the days from *start* (None: a year) to *end*."""
    earliest = end - LONGEST_DURATIONS
    return stage_durations(series, max(start or earliest, earliest), end)


def bound_series(series: SeriesQuerySet, resources: Collection[str]) -> SeriesQuerySet:
    """Return those of *series* that use one of *resources* (names)."""
    return Series.objects.filter(pk__in=series.filter(bindings__resource__name__in=resources).values("pk"))
