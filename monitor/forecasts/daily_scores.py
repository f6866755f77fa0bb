"""Add the scores of forecasts to the sums of their day, suite, site, metric and method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecasting.evaluation.metrics import absolute_errors, relative_errors
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.forecasts.statements import execute
from monitor.models import Binding, Metric

if TYPE_CHECKING:
    from monitor.forecasts.forecasts_sql import ScoredForecast

LARGEST_ERROR = 1e290  # a day's worth of such errors can be added
_TEN, _NINETY = QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.9)
_FIVE, _NINETY_FIVE = QUANTILE_LEVELS.index(0.05), QUANTILE_LEVELS.index(0.95)


class ScoreSums(NamedTuple):
    """The sums of ``DayScore``: of one forecast, or of several."""

    n: float = 0.0
    absolute_error: float = 0.0
    last_value_n: float = 0.0
    last_value_error: float = 0.0
    compared_error: float = 0.0
    relative_n: float = 0.0
    relative_error: float = 0.0
    interval_n: float = 0.0
    within_80: float = 0.0
    within_90: float = 0.0

    def plus(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(*(mine + its for mine, its in zip(self, other, strict=True)))


_KEY = "metric, day, suite_id, site_id, method, unit"
# Each key occurs once, in order, so that concurrent callers cannot deadlock. A suite or a site that has been
# deleted meanwhile is left out.
_ADD = f"""
INSERT INTO monitor_dayscore AS stored ({_KEY}, {", ".join(ScoreSums._fields)})
SELECT added.* FROM unnest(%(metric)b::text[], %(day)b::date[], %(suite)b::bigint[], %(site)b::bigint[],
    %(method)b::text[], %(unit)b::text[], {", ".join(f"%({name})b::float8[]" for name in ScoreSums._fields)}
) AS added (metric, day, suite, site)
WHERE EXISTS (SELECT FROM monitor_suite WHERE id = suite)
    AND (site IS NULL OR EXISTS (SELECT FROM monitor_site WHERE id = site))
ORDER BY 1, 2, 3, 4 NULLS FIRST, 5, 6
ON CONFLICT ({_KEY}) DO UPDATE SET
    {", ".join(f"{name} = stored.{name} + excluded.{name}" for name in ScoreSums._fields)}
"""  # noqa: S608  # constants of this module
_PRUNE = """
DELETE FROM monitor_dayscore AS old USING monitor_suite AS suite
WHERE old.suite_id = suite.id AND old.day < %(today)b::date - suite.keep_daily_days
"""


class _Key(NamedTuple):
    metric: str
    day: date
    suite: int
    site: int | None
    method: str
    unit: str


class _ScoredMetric(NamedTuple):
    """Where the scores of a metric are counted."""

    name: str
    unit: str
    suite: int
    sites: Sequence[int]


def add(scored: Iterable[ScoredForecast]) -> None:
    """Add the scores of forecasts whose actual values arrived.

    To be called once for each forecast, in the transaction that scores it.
    """
    scored = list(scored)
    metrics = _metrics({forecast.metric for forecast in scored})
    sums: dict[_Key, ScoreSums] = defaultdict(ScoreSums)
    for forecast, of_one in zip(scored, _sums(scored), strict=True):
        if metric := metrics.get(forecast.metric):
            day = forecast.truth_time.astimezone(UTC).date()
            for site in (None, *metric.sites):
                key = _Key(metric.name, day, metric.suite, site, forecast.method, metric.unit)
                sums[key] = sums[key].plus(of_one)
    if sums:
        keys = zip(_Key._fields, zip(*sums, strict=True), strict=True)
        values = zip(ScoreSums._fields, zip(*sums.values(), strict=True), strict=True)
        execute(_ADD, {name: list(column) for name, column in (*keys, *values)})


def prune(now: datetime) -> int:
    """Delete days that are older than their suites keep rollups of days; return how many rows."""
    return execute(_PRUNE, {"today": now.astimezone(UTC).date()})


def _sums(scored: Sequence[ScoredForecast]) -> list[ScoreSums]:
    """Return what each forecast adds."""
    actual, median = [forecast.truth for forecast in scored], [forecast.median for forecast in scored]
    has_baseline = np.array([forecast.last_value is not None for forecast in scored], bool)
    baseline = [forecast.truth if forecast.last_value is None else forecast.last_value for forecast in scored]
    errors = np.minimum(absolute_errors(actual, median), LARGEST_ERROR)
    baseline_errors = np.minimum(absolute_errors(actual, baseline), LARGEST_ERROR)
    has_relative = np.abs(actual) > 1 / LARGEST_ERROR
    relative = np.where(has_relative, np.minimum(relative_errors(actual, median), LARGEST_ERROR), 0.0)
    columns = {
        "n": [1.0] * len(scored),
        "absolute_error": errors,
        "last_value_n": has_baseline,
        "last_value_error": baseline_errors,
        "compared_error": np.where(has_baseline, errors, 0.0),
        "relative_n": has_relative,
        "relative_error": relative,
        "interval_n": [forecast.below is not None and forecast.upto is not None for forecast in scored],
        "within_80": [_is_within(forecast, _TEN, _NINETY) for forecast in scored],
        "within_90": [_is_within(forecast, _FIVE, _NINETY_FIVE) for forecast in scored],
    }
    rows = np.column_stack([np.asarray(column, np.float64) for column in columns.values()]).tolist()
    return [ScoreSums(**dict(zip(columns, row, strict=True))) for row in rows]


def _is_within(forecast: ScoredForecast, lower: int, upper: int) -> bool:
    """Return whether the actual value lies between two stored quantiles, ends included."""
    return (
        forecast.below is not None
        and forecast.upto is not None
        and forecast.upto > lower
        and forecast.below <= upper
    )


def _metrics(metrics: Iterable[int]) -> Mapping[int, _ScoredMetric]:
    found = Metric.objects.filter(pk__in=metrics).order_by()
    rows = list(found.values_list("pk", "name", "unit", "segment__series", "segment__series__suite"))
    sites = defaultdict(list)
    bindings = Binding.objects.filter(series__in={row[3] for row in rows}).order_by()
    for series, site in bindings.values_list("series", "resource__site").distinct():
        sites[series].append(site)
    return {pk: _ScoredMetric(name, unit, suite, sites[series]) for pk, name, unit, series, suite in rows}
