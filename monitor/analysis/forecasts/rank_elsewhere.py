"""Rank candidates with few runs, or none, by forecasts from elsewhere; store these forecasts."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from django.db import DatabaseError, transaction

from forecasting.elsewhere.abstained import NoPrediction
from monitor.analysis.forecasts.answer import store
from monitor.analysis.forecasts.basis import ForecastBasis
from monitor.analysis.forecasts.defaults import ELSEWHERE, HEADLINE, METHOD
from monitor.analysis.forecasts.elsewhere import ElsewhereForecast, forecast_elsewhere
from monitor.analysis.forecasts.lookup import RankCandidate
from monitor.analysis.forecasts.prune import prune_elsewhere
from monitor.analysis.forecasts.quantiles import quantile
from monitor.analysis.forecasts.statements import fetch
from monitor.analysis.forecasts.success_state import SuccessEstimate, TotalEstimate, estimates
from monitor.depot.series.next_segment import next_metric
from monitor.models import Forecast, ForecastDelivery, ForecastState

MOST_TARGETS = 100  # of a request: each takes some milliseconds
MOST_OWN_RUNS = 20  # with more, the own history counts
logger = logging.getLogger(__name__)

# On a logarithmic scale: an error counts alike where runs are short and where they are long.
_ERRORS = """
SELECT stored.series_id AS series, forecast.method, avg(abs(ln(truth / median))) AS error
FROM monitor_currentsegment AS stored
JOIN monitor_metric AS metric ON metric.segment_id = stored.segment_id AND metric.name = %(metric)b
JOIN monitor_forecast AS forecast ON forecast.metric_id = metric.id AND forecast.method = ANY (%(methods)b)
WHERE stored.series_id = ANY (%(series)b::bigint[]) AND at IS NULL AND counts AND truth > 0 AND median > 0
GROUP BY 1, 2
"""


class MethodError(NamedTuple):
    """The mean absolute error of the logarithm of the forecasts of a series by *method*."""

    series: int
    method: str
    error: float


@dataclass
class ElsewhereCandidates:
    """Candidates with a forecast from elsewhere, by series (keys), and why others have none."""

    ranked: dict[int, RankCandidate] = field(default_factory=dict)
    refused: dict[int, NoPrediction] = field(default_factory=dict)


def rank_elsewhere(
    found: Sequence[RankCandidate],
    without: Collection[int],
    *,
    probability: float,
    at: datetime,
    now: datetime,
) -> ElsewhereCandidates:
    """Return the candidates of *found* for which a forecast from elsewhere is used, or refused.

    *without* has the series that have too few runs. The first ``MOST_TARGETS`` of them count, and candidates
    with a history of their own whose forecasts have not been better than those from elsewhere. *probability*,
    *at* and *now* are as in ``rank.rank``.
    """
    none = [each for each in found if each.series in without][:MOST_TARGETS]
    young = [
        each
        for each in found
        if each.series not in without and each.mean is not None and (each.n or 0) < MOST_OWN_RUNS
    ]
    wanted = {each.series: each for each in [*none, *_worse_than_elsewhere(young)]}
    if not wanted:
        return ElsewhereCandidates()
    result = ElsewhereCandidates()
    issued: dict[int, ElsewhereForecast] = {}
    for series, answer in forecast_elsewhere(wanted, now).items():
        if isinstance(answer, ElsewhereForecast):
            issued[series] = answer
        else:
            result.refused[series] = answer
    try:
        with transaction.atomic():
            stored = {series: _stored(series, each, now) for series, each in sorted(issued.items())}
    except DatabaseError as error:
        logger.warning("cannot store %d forecasts from elsewhere: %s", len(issued), error)
        return result
    delivered = dict(
        ForecastDelivery.objects.filter(pk__in=stored.values()).values_list("pk", "delivered_at")
    )
    for series, forecast in _in_order(stored):
        candidate = _candidate(wanted[series], forecast, issued[series].replay_series, at, probability)
        result.ranked[series] = replace(candidate, delivered_at=delivered.get(forecast.pk))
    return result


def _worse_than_elsewhere(young: Sequence[RankCandidate]) -> list[RankCandidate]:
    """Return those of *young* whose own history has not been better than forecasts from elsewhere."""
    if not young:
        return []
    parameters = {
        "series": [each.series for each in young],
        "metric": HEADLINE,
        "methods": [ELSEWHERE, METHOD],
    }
    errors = {(row.series, row.method): row.error for row in fetch(MethodError, _ERRORS, parameters)}
    return [
        each
        for each in young
        if (elsewhere := errors.get((each.series, ELSEWHERE))) is not None
        and not errors.get((each.series, METHOD), math.inf) <= elsewhere
    ]


def _stored(series: int, elsewhere: ElsewhereForecast, now: datetime) -> int:
    """Store the forecast, and return its key; an equal one is stored once.

    Values of the series itself that are known already are not what the forecast is about.
    """
    forecast = elsewhere.forecast
    forecast.metric_id = next_metric(series, elsewhere.identity, HEADLINE, "seconds", now)
    own = ForecastState.objects.filter(pk=forecast.metric_id).values_list("last_time", "used_until").first()
    if own is not None:
        forecast.last_time = max(forecast.last_time, own[0] or forecast.last_time)
        forecast.last_known_at = max(forecast.last_known_at, own[1] or forecast.last_known_at)
    key = store(forecast)
    prune_elsewhere(forecast.metric_id, key, now)
    return key


def _in_order(stored: Mapping[int, int]) -> list[tuple[int, Forecast]]:
    forecasts = Forecast.objects.in_bulk(stored.values())
    return [(series, forecasts[key]) for series, key in stored.items()]


def _candidate(
    candidate: RankCandidate, forecast: Forecast, replay_series: int, at: datetime, probability: float
) -> RankCandidate:
    """Return *candidate* with *forecast*; a run is as likely to pass as a replay on the same resources."""
    total = TotalEstimate(replay_series, forecast.mean, forecast.quantiles or ())
    success = estimates([replay_series], at, {replay_series: total}).get(replay_series, SuccessEstimate())
    quantiles = success.success_quantiles
    return replace(
        candidate,
        forecast=forecast.pk,
        n=0,
        mean=forecast.mean,
        median=forecast.median,
        known_until=forecast.last_known_at,
        success_n=success.success_n,
        success_probability=success.success_probability,
        success_seconds=success.success_seconds,
        seconds=None if quantiles is None else quantile(quantiles, probability),
        method=ELSEWHERE,
        basis=ForecastBasis.of(forecast.basis) if forecast.basis else None,
    )
