"""The start time of the run to be forecast."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from monitor.web.api.http.problems import Refused

MOST_SECONDS = 366 * 86_400.0
# A duration from now on, such as the time until a run starts.
Horizon = Annotated[float, Field(ge=0, le=MOST_SECONDS)]


def start_time(at: datetime | None, horizon_seconds: float | None, now: datetime) -> datetime | None:
    """Return the start time given by *at* or by *horizon_seconds* from *now*; None means now.

    Raises:
        Refused: both are given, or the time is more than a year ahead.
    """
    if at is not None and horizon_seconds is not None:
        raise Refused(422, "invalid", "expected one of at and horizon_seconds, got both")
    if horizon_seconds is not None:
        return now + timedelta(seconds=horizon_seconds)
    if at is not None and (at - now).total_seconds() > MOST_SECONDS:
        raise Refused(422, "invalid", f"at: expected a time within a year, got {at.isoformat()}")
    return at
