"""Note which forecasts somebody was given: those he may tell an outcome of, whatever was said after them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import DatabaseError

from monitor.forecasts import delivered_sql

NOTED_EVERY = timedelta(days=1)  # while the same is given again and again
KEPT_FOR = timedelta(days=30)
AT_ONCE = 5_000
logger = logging.getLogger(__name__)


def give(said: Iterable[tuple[int | None, datetime | None]], now: datetime) -> None:
    """These forecasts (their keys, each with when that was noted last) are told to somebody now.

    Where that cannot be noted, as on a disk that is full, he has his answer all the same.
    """
    new = [key for key, noted in said if key and (noted is None or now - noted > NOTED_EVERY)]
    if new:
        try:
            delivered_sql.give(new, now)
        except DatabaseError as error:
            logger.warning("it was not noted that %d forecasts were given: %s", len(new), error)


def forget_given(now: datetime) -> int:
    """Let go what was given so long ago that nobody is waited for any more; how many."""
    return delivered_sql.forget(now - KEPT_FOR, AT_ONCE)
