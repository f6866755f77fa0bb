"""How fresh the newest result of a series is: a function of its schedule, its last end and the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from monitor.depot.series.staleness import (
    CODES,
    UNSCHEDULED,
    Staleness,
    allowed_age,
    allowed_age_seconds,
    freshness,
    freshness_codes,
    longest_gap_seconds,
)
from monitor.models import Series

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        ("*/2 * * * *", 2 * MINUTE),
        ("H/10 * * * *", 10 * MINUTE),
        ("17 * * * *", HOUR),
        ("*/10 8-17 * * mon-fri", 62 * HOUR + 10 * MINUTE),  # over the weekend
        ("0 9 * * mon", 7 * DAY),
        ("0 0 1 * *", 31 * DAY),
        ("0 0 1 1 *", 365 * DAY),
        ("", None),
        ("not cron", None),
    ],
)
def test_the_longest_gap_of_a_schedule(schedule: str, seconds: float | None) -> None:
    assert longest_gap_seconds(schedule, "UTC") == seconds


@pytest.mark.parametrize(
    ("age_seconds", "is_imported", "expected"),
    [
        (0.0, False, Staleness.CURRENT),
        (2 * HOUR + 1800, False, Staleness.CURRENT),
        (2 * HOUR + 1801, False, Staleness.STALE),
        (-5.0, False, Staleness.CURRENT),  # a clock that is ahead
        (np.nan, False, Staleness.NEVER_SEEN),
        (0.0, True, Staleness.IMPORTED),
        (np.nan, True, Staleness.IMPORTED),
    ],
)
def test_a_result_and_many_results_are_judged_alike(
    age_seconds: float, is_imported: bool, expected: Staleness
) -> None:
    allowed = allowed_age_seconds("0 * * * *", "UTC", limit_seconds=1800.0)
    last_end = None if np.isnan(age_seconds) else NOW - timedelta(seconds=age_seconds)
    assert freshness(last_end, NOW, allowed_age_seconds=allowed, is_imported=is_imported) == expected
    (code,) = freshness_codes(np.array([age_seconds]), np.array([allowed]), np.array([is_imported]))
    assert CODES[code] == expected


def test_nothing_is_due_of_a_series_without_schedule_or_disabled() -> None:
    hourly = Series(name="hourly", schedule="0 * * * *", limit_seconds=60.0)
    follower = Series(name="follower", leader=hourly, delay_seconds=30, limit_seconds=60.0)
    assert allowed_age(hourly) == 2 * HOUR + 60
    assert allowed_age(follower) == 2 * HOUR + 90
    assert allowed_age(Series(name="on-demand")) == UNSCHEDULED
    hourly.enabled = False
    assert allowed_age(hourly) == allowed_age(follower) == UNSCHEDULED
