"""Delete what forecasting has kept for long enough: a bounded part per call (docs/forecasting.md)."""

from __future__ import annotations

from datetime import datetime

from monitor.forecasts import daily_scores, forecasts_sql
from monitor.forecasts.deliveries import prune_deliveries
from monitor.forecasts.score import DAY

FORECASTS_AT_ONCE = 5_000


def prune_forecasts(now: datetime) -> None:
    """Delete old deliveries, expired forecasts that were not delivered, and old scores of days."""
    prune_deliveries(now)
    forecasts_sql.prune_expired(now - DAY, FORECASTS_AT_ONCE)
    daily_scores.prune(now)
