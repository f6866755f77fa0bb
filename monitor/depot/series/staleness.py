"""Whether the newest result of a series is as new as its schedule says.

A result is stale once it is older than two of the longest gaps between slots, and the time limit of a run:
then at least one slot has passed without a result. Decisions are functions of values, with the time as an
argument.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from reporters.schedule import InvalidSchedule, parse_schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Series

UNSCHEDULED = np.inf  # the allowed age of a series that runs on demand only
_GAPS = 2
_ENOUGH_GAPS = 3  # of a sample, to hold the longest
_SAMPLE_FROM = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday
_SAMPLES = (timedelta(days=8), timedelta(days=64), timedelta(days=800))  # weeks, months, years


class Staleness(StrEnum):
    """How new the newest result of a series is."""

    CURRENT = "current"
    STALE = "stale"
    NEVER_SEEN = "never_seen"
    IMPORTED = "imported"


# The position of each in the numbers that ``freshness_codes`` returns.
CODES = tuple(Staleness)


def freshness(
    last_end: datetime | None, now: datetime, *, allowed_age_seconds: float, is_imported: bool = False
) -> Staleness:
    """Return the freshness of a series whose newest result that was not skipped ended at *last_end*.

    *allowed_age_seconds* is that of ``allowed_age_seconds``.
    """
    if is_imported:
        return Staleness.IMPORTED
    if last_end is None:
        return Staleness.NEVER_SEEN
    is_stale = (now - last_end).total_seconds() > allowed_age_seconds
    return Staleness.STALE if is_stale else Staleness.CURRENT


def freshness_codes(
    age_seconds: NDArray[np.float64],
    allowed_age_seconds: NDArray[np.float64],
    is_imported: NDArray[np.bool_],
) -> NDArray[np.int8]:
    """Return ``freshness`` of many series as positions in ``CODES``; the age of one never seen is NaN."""
    conditions = [is_imported, np.isnan(age_seconds), age_seconds > allowed_age_seconds]
    chosen = [Staleness.IMPORTED, Staleness.NEVER_SEEN, Staleness.STALE]
    numbers = [CODES.index(each) for each in chosen]
    return np.select(conditions, numbers, CODES.index(Staleness.CURRENT)).astype(np.int8)


def allowed_age_seconds(
    schedule: str, zone: str, *, limit_seconds: float, jitter_seconds: float = 0.0
) -> float:
    """Return the age from which on a result of a series with *schedule* is stale, in seconds.

    A series without a schedule, or with one that cannot be read, has ``UNSCHEDULED``.
    """
    gap = longest_gap_seconds(schedule, zone) if schedule else None
    return UNSCHEDULED if gap is None else _GAPS * gap + limit_seconds + jitter_seconds


def allowed_age(series: Series) -> float:
    """Return ``allowed_age_seconds`` of *series*; one that follows a leader has the leader's schedule.

    Nothing is due of a disabled series: its results do not become stale.
    """
    leading = series.leader or series
    if not (series.enabled and leading.enabled):
        return UNSCHEDULED
    return allowed_age_seconds(
        leading.schedule,
        leading.timezone,
        limit_seconds=series.limit_seconds,
        jitter_seconds=series.jitter_seconds + series.delay_seconds,
    )


@lru_cache(maxsize=4096)
def longest_gap_seconds(schedule: str, zone: str) -> float | None:
    """Return the longest time between two slots of *schedule*; None if it cannot be read or has one slot."""
    try:
        parsed = parse_schedule(schedule, "", zone=zone)
    except InvalidSchedule:
        return None
    gaps: list[timedelta] = []
    for sample in _SAMPLES:
        slots = list(parsed.slots(_SAMPLE_FROM, _SAMPLE_FROM + sample))
        gaps = [later - earlier for earlier, later in pairwise(slots)]
        if len(gaps) >= _ENOUGH_GAPS:
            break
    return max(gaps).total_seconds() if gaps else None
