"""Periods of reports: keys, neighbours and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from monitor.web.reports.periods import InvalidPeriod, parse_period

NOW = datetime(2026, 6, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("key", "first", "end", "before", "after", "label"),
    [
        ("2026-05", date(2026, 5, 1), date(2026, 6, 1), "2026-04", "2026-06", "May 2026"),
        ("2025-12", date(2025, 12, 1), date(2026, 1, 1), "2025-11", "2026-01", "December 2025"),
        ("2026-W21", date(2026, 5, 18), date(2026, 5, 25), "2026-W20", "2026-W22", "Week 21, 2026"),
        ("2026-W01", date(2025, 12, 29), date(2026, 1, 5), "2025-W52", "2026-W02", "Week 1, 2026"),
        ("2020-W53", date(2020, 12, 28), date(2021, 1, 4), "2020-W52", "2021-W01", "Week 53, 2020"),
    ],
)
def test_a_period_has_days_and_neighbours(
    key: str, first: date, end: date, before: str, after: str, label: str
) -> None:
    period = parse_period(key, NOW)
    assert (period.first, period.end, period.label, period.key) == (first, end, label, key)
    assert (period.before.key, period.after.key) == (before, after)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2025-W53", "2025 has no week 53"),
        ("2026-W24", "lies in the future"),
        ("2026-07", "lies in the future"),
        ("2026-13", "expected a month such as 2026-03"),
        ("", "or a week such as 2026-W21"),
    ],
)
def test_what_is_no_period_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidPeriod, match=message):
        parse_period(text, NOW)


def test_a_period_that_lasts_ends_now() -> None:
    assert parse_period("2026-06", NOW).until(NOW) == NOW
    assert parse_period("2026-05", NOW).until(NOW) == datetime(2026, 6, 1, tzinfo=UTC)
