"""The intervals of a time range of failures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.analysis.outcomes.counts import LONGEST, failure_range

NOW = datetime(2026, 3, 4, 12, 10, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("length", "interval"),
    [
        (HOUR, 5 * MINUTE),
        (DAY, HOUR),
        (7 * DAY, 6 * HOUR),
        (30 * DAY, DAY),
        (90 * DAY, 3 * DAY),
        (365 * DAY, 14 * DAY),
        (3650 * DAY, 122 * DAY),
    ],
)
def test_at_most_32_intervals_of_round_length_cover_the_range(length: timedelta, interval: timedelta) -> None:
    chosen = failure_range(NOW - length, NOW)
    starts = chosen.starts(NOW)
    assert chosen.interval == interval
    assert len(starts) <= 32
    assert NOW - length - interval < starts[0] <= NOW - length
    assert starts[-1] <= NOW < starts[-1] + interval
    assert chosen.begin(NOW) == NOW - length


def test_a_range_without_a_beginning_is_the_last_year() -> None:
    assert failure_range(None, NOW).begin(NOW) == NOW - LONGEST
