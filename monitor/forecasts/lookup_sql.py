"""Forecasts that are ready to be told: all that an answer needs of one series in one statement, and what a
rank needs of a thousand in another.

What is read says itself whether it is of what the next run will do (``monitor.models.current_segment``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from monitor.db import binary
from monitor.models.current_segment import SETUP
from monitor.models.hold import HoldKind
from monitor.models.reporter import HOME
from monitor.models.run import State
from monitor.models.series import VISIBLE

# What is said of an answer is as it was when that was made: a state may have begun anew since.
_FROM = """
FROM monitor_series AS series
JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
LEFT JOIN monitor_currentsegment AS kept ON kept.series_id = series.id
LEFT JOIN monitor_segment AS segment ON segment.id = kept.segment_id
LEFT JOIN monitor_metric AS metric ON metric.segment_id = kept.segment_id AND metric.name = %(metric)b
LEFT JOIN monitor_forecaststate AS state ON state.metric_id = metric.id
LEFT JOIN monitor_forecast AS said ON said.id = state.forecast_id
LEFT JOIN monitor_forecastgiven AS given ON given.forecast_id = state.forecast_id
LEFT JOIN monitor_successstate AS success ON success.series_id = series.id
"""
_PLACE = f"""series.id, series.name, series.probe, coalesce(kept.path, ''), coalesce(kept.resources, ''),
    kept.segment_id IS NOT NULL AND kept.setup = {SETUP}, coalesce(segment.probe_version, ''),
    reporter.name = '{HOME}'"""
# Whether anything is known that may keep runs from the path: what exactly is asked for only then.
_TROUBLED = f"""(
    EXISTS (SELECT FROM monitor_latestrun AS latest WHERE latest.series_id = series.id
        AND latest.failed_resource <> '' AND latest.state IN ('{State.FAILED}', '{State.TIMED_OUT}'))
    OR EXISTS (SELECT FROM monitor_hold WHERE ended_at IS NULL AND kind = '{HoldKind.SITE}')
    OR EXISTS (SELECT FROM monitor_maintenancewindow AS work
        WHERE (work.schedule <> '' OR work.ends_at > %(at)b AND work.starts_at <= %(at)b)
        AND (NOT EXISTS (SELECT FROM monitor_maintenancewindow_sites WHERE maintenancewindow_id = work.id)
            OR EXISTS (SELECT FROM monitor_maintenancewindow_sites AS its
                JOIN monitor_resource AS there USING (site_id)
                JOIN monitor_binding AS bound ON bound.resource_id = there.id
                WHERE its.maintenancewindow_id = work.id AND bound.series_id = series.id))))"""  # noqa: S608
_ONE = f"""
SELECT {_PLACE}, {_TROUBLED}, metric.id, metric.unit, state.forecast_id, given.given_at, state.method,
    state.predictor, coalesce(said.n, state.n), state.mean, state.median, state.quantiles, state.issued_at,
    said.last_time, said.last_known_at, state.stale_at, state.explanation::text, state.record_n,
    state.mean_absolute_error, state.relative_error, state.mean_absolute_scaled_error, state.winkler_score,
    state.less, state.most, success.n, success.probability, success.expected_seconds, success.quantiles
{_FROM} WHERE series.name = %(series)b AND {VISIBLE}
"""
# Of the quantiles there is the one that is asked for, between two of the grid.
_MANY = f"""
SELECT {_PLACE}, state.forecast_id, given.given_at, coalesce(said.n, state.n), state.mean, state.median,
    said.last_known_at, state.stale_at, success.n, success.probability, success.expected_seconds,
    success.quantiles[%(left)b] + %(share)b * (success.quantiles[%(right)b] - success.quantiles[%(left)b])
{_FROM} WHERE {VISIBLE} AND """
_BY = {
    "series": "series.name = ANY (%(asked)b)",
    "path": "series.probe = %(application)b AND kept.path = ANY (%(asked)b)",
    "resources": "series.probe = %(application)b AND kept.resources = ANY (%(asked)b)",
}


class Place(NamedTuple):
    """A series: what it runs (*application*) where; *is_current* while what is kept of it holds."""

    series: int
    name: str
    application: str
    path: str
    resources: str
    is_current: bool
    version: str
    is_home: bool


class Ready(NamedTuple):
    """What is ready of a metric of a series: see ``ForecastState`` and ``SuccessState``. *metric* is None
    where the current segment has none of that name, *mean* where there are too few values. *n*, *last_time*
    and *known_until* are of what the answer was made from; *given_at* is when it was noted last that somebody
    was given it."""

    place: Place
    is_troubled: bool
    metric: int | None
    unit: str | None
    forecast: int | None
    given_at: datetime | None
    method: str | None
    predictor: str | None
    n: int | None
    mean: float | None
    median: float | None
    quantiles: Sequence[float] | None
    issued_at: datetime | None
    last_time: datetime | None
    known_until: datetime | None
    stale_at: datetime | None
    explanation: str | None
    record_n: int | None
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    winkler_score: float | None
    less: Sequence[int] | None
    most: Sequence[int] | None
    success_n: int | None
    success_probability: float | None
    success_seconds: float | None
    success_quantiles: Sequence[float] | None


class Candidate(NamedTuple):
    """What is ready of one of many; *seconds* is the quantile that was asked for, of the time until a run has
    passed."""

    place: Place
    forecast: int | None
    given_at: datetime | None
    n: int | None
    mean: float | None
    median: float | None
    known_until: datetime | None
    stale_at: datetime | None
    success_n: int | None
    success_probability: float | None
    success_seconds: float | None
    seconds: float | None


_FIELDS = len(Place._fields)


def one(series: str, metric: str, at: datetime, who: Mapping[str, object]) -> Ready | None:
    """Of the series of that name, if *who* (``user``, ``sees_all``) may see it; nothing counts as work at its
    sites that is over, or has not begun, at *at*."""
    row = binary.row(_ONE, {"series": series, "metric": metric, "at": at, **who})
    return row and Ready(Place(*row[:_FIELDS]), *row[_FIELDS:])


def many(
    by: str,
    asked: Sequence[str],
    application: str,
    metric: str,
    between: tuple[int, int, float],
    who: Mapping[str, object],
) -> Iterator[Candidate]:
    """Of those that *who* may see and that are *asked* for, *by* ``series``, ``path`` or ``resources``.

    *between* are two places in the grid, and how far on from the one to the other.
    """
    left, right, share = between
    places = {"left": left + 1, "right": right + 1, "share": share}
    parameters = {"asked": list(asked), "application": application, "metric": metric, **places, **who}
    with binary.cursor() as cursor:
        cursor.execute((_MANY + _BY[by]).encode(), parameters, binary=True)
        for row in cursor.fetchall():
            yield Candidate(Place(*row[:_FIELDS]), *row[_FIELDS:])
