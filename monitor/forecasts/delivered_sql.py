"""Which forecasts somebody was given: those stay until he may have told what became of his job."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from monitor.db import binary

# Nobody who asks waits for a disk: what is lost with the database's power is a note of its last second.
_GIVE = """
WITH quickly AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO monitor_forecastgiven AS given (forecast_id, given_at)
SELECT forecast, %(now)b FROM quickly, unnest(%(forecasts)b::bigint[]) AS said (forecast) ORDER BY forecast
ON CONFLICT (forecast_id) DO UPDATE SET given_at = excluded.given_at WHERE given.given_at < excluded.given_at
"""
# One about a time that is still to come is kept for as long after that.
_FORGET = """
DELETE FROM monitor_forecastgiven WHERE forecast_id = ANY (ARRAY(
    SELECT given.forecast_id FROM monitor_forecastgiven AS given
    LEFT JOIN monitor_forecast AS forecast ON forecast.id = given.forecast_id
    WHERE given_at < %(before)b AND (forecast.at IS NULL OR forecast.at < %(before)b)
    ORDER BY given.forecast_id LIMIT %(at_most)b FOR UPDATE OF given SKIP LOCKED))
"""


def give(forecasts: Collection[int], now: datetime) -> None:
    """These (their keys) are told to somebody."""
    with binary.cursor() as cursor:
        cursor.execute(_GIVE, {"forecasts": sorted(set(forecasts)), "now": now})


def forget(before: datetime, at_most: int) -> int:
    """Let go those that were given before then; how many."""
    with binary.cursor() as cursor:
        return cursor.execute(_FORGET, {"before": before, "at_most": at_most}).rowcount
