"""The start time of the run to be forecast."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.api.http.find_metrics import in_utc
from monitor.api.http.problems import Refused

MOST_SECONDS = 366 * 86_400.0


def start_time(at: datetime | None, horizon: float | None, now: datetime) -> datetime | None:
    """Return the start time given by *at* or by *horizon* (seconds from *now*); None means now.

    Raises:
        Refused: both are given, or the time is more than a year ahead.
    """
    if at is not None and horizon is not None:
        raise Refused(422, "invalid", "expected one of at and horizon, got both")
    if horizon is not None:
        if not 0 <= horizon <= MOST_SECONDS:
            raise Refused(422, "invalid", f"horizon: expected 0 to {MOST_SECONDS:.0f} seconds, got {horizon}")
        return now + timedelta(seconds=horizon)
    time = in_utc("at", at)
    if time is not None and (time - now).total_seconds() > MOST_SECONDS:
        raise Refused(422, "invalid", f"at: expected a time within a year, got {time.isoformat()}")
    return time
