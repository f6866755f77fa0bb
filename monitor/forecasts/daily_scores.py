"""Add up how forecasts fared: by day, suite, site, metric and method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.db import binary
from monitor.models import Binding, Metric

if TYPE_CHECKING:
    from monitor.forecasts.forecasts_sql import ScoredForecast

LARGEST = 1e290  # so many of such errors as there can be have a sum
_TEN, _NINETY = QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.9)
_FIVE, _NINETY_FIVE = QUANTILE_LEVELS.index(0.05), QUANTILE_LEVELS.index(0.95)

_SUMS = (
    *("n", "absolute_error", "last_value_n", "last_value_error", "compared_error", "relative_n"),
    *("relative_error", "interval_n", "within_80", "within_90"),
)
_KEY = "metric, day, suite_id, site_id, method, unit"
# Each key once, in order, so that two who add at once never wait in a circle. A suite or a site that has gone
# meanwhile is left out.
_ADD = f"""
INSERT INTO monitor_dayscore AS kept ({_KEY}, {", ".join(_SUMS)})
SELECT added.* FROM unnest(%b::text[], %b::date[], %b::bigint[], %b::bigint[], %b::text[], %b::text[],
    {", ".join("%b::float8[]" for _ in _SUMS)}) AS added (metric, day, suite, site)
WHERE EXISTS (SELECT FROM monitor_suite WHERE id = suite)
    AND (site IS NULL OR EXISTS (SELECT FROM monitor_site WHERE id = site))
ORDER BY 1, 2, 3, 4 NULLS FIRST, 5, 6
ON CONFLICT ({_KEY}) DO UPDATE SET {", ".join(f"{one} = kept.{one} + excluded.{one}" for one in _SUMS)}
"""  # noqa: S608
_FORGET = """
DELETE FROM monitor_dayscore AS old USING monitor_suite AS suite
WHERE old.suite_id = suite.id AND old.day < %b::date - suite.keep_daily_days
"""


class _Key(NamedTuple):
    metric: str
    day: date
    suite: int
    site: int | None
    method: str
    unit: str


class _Place(NamedTuple):
    """Where the score of a metric is counted."""

    metric: str
    unit: str
    suite: int
    sites: Sequence[int]


def add(scored: Sequence[ScoredForecast]) -> None:
    """Count forecasts whose truths have come; to be called once for each, in the transaction that scores."""
    places = _places({one.metric for one in scored})
    sums: dict[_Key, list[float]] = defaultdict(lambda: [0.0] * len(_SUMS))
    for one in scored:
        if place := places.get(one.metric):
            day = one.truth_time.astimezone(UTC).date()
            said = _said(one)
            for site in (None, *place.sites):
                kept = sums[_Key(place.metric, day, place.suite, site, one.method, place.unit)]
                kept[:] = [had + more for had, more in zip(kept, said, strict=True)]
    if sums:
        columns = [*map(list, zip(*sums, strict=True)), *map(list, zip(*sums.values(), strict=True))]
        with binary.cursor() as cursor:
            cursor.execute(_ADD.encode(), columns)


def forget(now: datetime) -> int:
    """Let days go for which their suites do not keep rollups of days any more; how many rows these are."""
    with binary.cursor() as cursor:
        return cursor.execute(_FORGET, [now.astimezone(UTC).date()]).rowcount


def _said(one: ScoredForecast) -> list[float]:
    """What one forecast adds, in the order of ``_SUMS``."""
    error = _limited(one.truth - one.median)
    last = None if one.last_value is None else _limited(one.truth - one.last_value)
    relative = _limited(error / abs(one.truth)) if abs(one.truth) > 1 / LARGEST else None
    return [
        1,
        error,
        last is not None,
        last or 0.0,
        error if last is not None else 0.0,
        relative is not None,
        relative or 0.0,
        _has_interval(one),
        _within(one, _TEN, _NINETY),
        _within(one, _FIVE, _NINETY_FIVE),
    ]


def _has_interval(one: ScoredForecast) -> bool:
    return one.below is not None and one.upto is not None


def _within(one: ScoredForecast, lower: int, upper: int) -> bool:
    """Whether the truth lay between two quantiles of the grid, ends included."""
    return one.below is not None and one.upto is not None and one.upto > lower and one.below <= upper


def _limited(error: float) -> float:
    return min(abs(error), LARGEST)


def _places(metrics: Iterable[int]) -> Mapping[int, _Place]:
    found = Metric.objects.filter(pk__in=metrics).order_by()
    rows = list(found.values_list("pk", "name", "unit", "segment__series", "segment__series__suite"))
    sites = defaultdict(list)
    for series, site in _sites({row[3] for row in rows}):
        sites[series].append(site)
    return {pk: _Place(name, unit, suite, sites[series]) for pk, name, unit, series, suite in rows}


def _sites(series: Iterable[int]) -> Iterator[tuple[int, int]]:
    bound = Binding.objects.filter(series__in=series).order_by()
    yield from bound.values_list("series", "resource__site").distinct()
