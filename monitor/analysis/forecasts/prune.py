"""Delete old forecasts, deliveries, scores and predictors, a bounded part per call (docs/forecasting.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from monitor.analysis.forecasts import daily_scores, states
from monitor.analysis.forecasts.defaults import ELSEWHERE, HEADLINE, METHOD
from monitor.analysis.forecasts.statements import execute
from monitor.models import ForecastPredictor, ForecastState

KEPT = {HEADLINE: 2_000}  # forecasts of a metric: as many as charts show
KEPT_OF_OTHERS = 200
KEEP_DELIVERIES = timedelta(days=30)
DAY = timedelta(days=1)
AT_ONCE = 5_000
ENDED_AFTER = timedelta(days=2)
ENDED_AT_ONCE = 20  # metrics; each is read again, which takes a second or two for a long history

_IS_UNUSED = """
    NOT EXISTS (SELECT FROM monitor_outcome WHERE forecast_id = old.id)
    AND NOT EXISTS (SELECT FROM monitor_forecastdelivery WHERE forecast_id = old.id)
    AND NOT EXISTS (
        SELECT FROM monitor_forecaststate WHERE metric_id = old.metric_id AND forecast_id = old.id)
"""
_PRUNE = f"""
DELETE FROM monitor_forecast AS old
USING unnest(%(metrics)b::bigint[], %(most)b::bigint[]) AS kept (metric, most)
WHERE metric_id = metric AND (
    (NOT counts OR at < %(day_ago)b) AND issued_at < %(day_ago)b OR last_known_at < (
        SELECT last_known_at FROM monitor_forecast
        WHERE metric_id = metric AND method = %(method)b AND at IS NULL AND counts
        ORDER BY last_known_at DESC OFFSET most LIMIT 1
    )
) AND {_IS_UNUSED}
"""  # noqa: S608  # constants of this module
# As ``_PRUNE``, of metrics without new values. The first condition is that of an index.
_PRUNE_EXPIRED = f"""
DELETE FROM monitor_forecast WHERE id = ANY (ARRAY(
    SELECT id FROM monitor_forecast AS old
    WHERE (at IS NOT NULL OR NOT counts) AND (NOT counts OR at < %(day_ago)b) AND issued_at < %(day_ago)b
        AND {_IS_UNUSED}
    LIMIT %(at_most)b FOR UPDATE SKIP LOCKED))
"""  # noqa: S608
# Forecasts from elsewhere that *key* replaces, while no run of the metric has passed.
_PRUNE_ELSEWHERE = f"""
DELETE FROM monitor_forecast AS old
WHERE metric_id = %(metric)b AND method = '{ELSEWHERE}' AND truth IS NULL AND id <> %(key)b
    AND issued_at < %(day_ago)b AND {_IS_UNUSED}
"""  # noqa: S608
# The period begins, for a forecast of a future time, at that time.
_PRUNE_DELIVERIES = """
DELETE FROM monitor_forecastdelivery WHERE forecast_id = ANY (ARRAY(
    SELECT delivery.forecast_id FROM monitor_forecastdelivery AS delivery
    LEFT JOIN monitor_forecast AS forecast ON forecast.id = delivery.forecast_id
    WHERE delivered_at < %(before)b AND (forecast.at IS NULL OR forecast.at < %(before)b)
    ORDER BY delivery.forecast_id LIMIT %(at_most)b FOR UPDATE OF delivery SKIP LOCKED))
"""


def prune_forecasts(now: datetime) -> None:
    """Delete old deliveries, expired forecasts, old daily scores, and predictors of earlier segments."""
    prune_deliveries(now)
    execute(_PRUNE_EXPIRED, {"day_ago": now - DAY, "at_most": AT_ONCE})
    daily_scores.prune(now)
    _stop_predicting_ended(now)


def prune_deliveries(now: datetime) -> int:
    """Delete deliveries so old that no outcome is expected any more; return the number of deliveries."""
    return execute(_PRUNE_DELIVERIES, {"before": now - KEEP_DELIVERIES, "at_most": AT_ONCE})


def prune_elsewhere(metric: int, key: int, now: datetime) -> None:
    """Delete the forecasts of *metric* from elsewhere that the forecast *key* has replaced for a day."""
    execute(_PRUNE_ELSEWHERE, {"metric": metric, "key": key, "day_ago": now - DAY})


def keep_newest(names: Mapping[int, str], now: datetime) -> None:
    """Delete old forecasts of these metrics (names by key).

    A forecast is old in two cases:

    - It is older than the newest ``KEPT`` counting forecasts of the next run by ``METHOD``.
    - It is more than a day old, and it does not count or is about a time in the past.

    Current forecasts stay, and so do forecasts that were delivered or have an outcome.
    """
    if names:
        most = [KEPT.get(name, KEPT_OF_OTHERS) for name in names.values()]
        execute(_PRUNE, {"metrics": list(names), "most": most, "method": METHOD, "day_ago": now - DAY})


@transaction.atomic
def _stop_predicting_ended(now: datetime) -> None:
    """Remove predictors from metrics of earlier segments: otherwise each new predictor value updates them.

    The states of the metrics are reset, because they have used the predictors; the forecasts stay. Predictors
    are chosen again when the series returns to the segment.
    """
    is_current = Q(metric__segment=F("metric__segment__series__currentsegment__segment"))
    ended = ForecastState.objects.annotate(
        newest=Coalesce("last_time", "metric__segment__began_at"),
    ).filter(
        is_behind=False,
        newest__lt=now - ENDED_AFTER,
        metric__predictors__isnull=False,
        metric__segment__series__currentsegment__isnull=False,
    )
    of_earlier = ended.exclude(is_current).order_by("pk").distinct()
    names = dict(of_earlier.values_list("pk", "metric__name")[:ENDED_AT_ONCE])
    if names:
        states.lock(ForecastState, names)
        ForecastPredictor.objects.filter(metric__in=names).delete()
        states.reset(ForecastState, names)
        keep_newest(names, now)
