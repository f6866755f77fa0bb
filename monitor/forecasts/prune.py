"""Take away what forecasting has kept for long enough: some of it in every call (docs/forecasting.md)."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.forecasts import daily_scores, forecasts_sql, hibernate_sql
from monitor.forecasts.delivered import forget_given
from monitor.forecasts.score import A_DAY, keep_newest

# Whoever is later than that has what is known of a segment of before read anew.
RESTS_AFTER = timedelta(days=2)
RESTING_AT_ONCE = 500  # metrics
FORECASTS_AT_ONCE = 5_000


def retain_forecasts(now: datetime) -> None:
    """Notes of who was given what, forecasts that are over and that nobody was given, scores of days that
    their suites do not keep, and what forecasters know of segments that are over."""
    forget_given(now)
    forecasts_sql.forget_passing(now - A_DAY, FORECASTS_AT_ONCE)
    daily_scores.forget(now)
    keep_newest(hibernate_sql.rest(now - RESTS_AFTER, RESTING_AT_ONCE), now)
