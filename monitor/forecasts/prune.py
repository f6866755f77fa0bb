"""Take away what forecasting has kept for long enough: some of it in every call (docs/forecasting.md)."""

from __future__ import annotations

from datetime import datetime

from monitor.forecasts import daily_scores, forecasts_sql
from monitor.forecasts.deliveries import prune_deliveries
from monitor.forecasts.score import DAY

FORECASTS_AT_ONCE = 5_000


def retain_forecasts(now: datetime) -> None:
    """Notes of who was given what, forecasts that are over and that nobody was given, scores of days that
    their suites do not keep, and what forecasters know of segments that are over."""
    prune_deliveries(now)
    forecasts_sql.prune_expired(now - DAY, FORECASTS_AT_ONCE)
    daily_scores.forget(now)
