"""Delete what forecasting has kept for long enough: a bounded part per call (docs/forecasting.md)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from monitor.forecasts import daily_scores, forecasts_sql, predictors_sql
from monitor.forecasts.deliveries import prune_deliveries
from monitor.forecasts.score import DAY, keep_newest
from monitor.forecasts.state_table import METRIC_STATES

FORECASTS_AT_ONCE = 5_000
ENDED_AFTER = timedelta(days=2)
ENDED_AT_ONCE = 20  # metrics; each is read again, which takes a second or two for a long history


def prune_forecasts(now: datetime) -> None:
    """Delete old deliveries, expired forecasts, old scores of days, and predictors of earlier segments."""
    prune_deliveries(now)
    forecasts_sql.prune_expired(now - DAY, FORECASTS_AT_ONCE)
    daily_scores.prune(now)
    _stop_predicting_ended(now)


@transaction.atomic
def _stop_predicting_ended(now: datetime) -> None:
    """Delete the predictors of metrics of earlier segments: their values would update these metrics for ever.

    The states are reset, as they have used the predictors; their answers stay. Predictors are chosen again
    when the series returns to the segment.
    """
    names = predictors_sql.ended(now - ENDED_AFTER, ENDED_AT_ONCE)
    if names:
        METRIC_STATES.follow_and_lock(names)
        predictors_sql.delete(names)
        METRIC_STATES.reset(names)
        keep_newest(names, now)
