"""What each condition about reporters says, case by case."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from monitor.analysis.alerts import reporter_conditions
from monitor.analysis.alerts.reporter_conditions.base import Drop, ReporterInput

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
WELL = ReporterInput(
    enrolled_at=NOON - 100 * HOUR, seen_at=NOON - MINUTE, clock_offset_seconds=0.01, clock_bound_seconds=0.05
)

CASES = [
    ("unseen_seconds", 900, WELL, False, "exchanged again at 2026-03-01 11:59:00 UTC"),
    (
        "unseen_seconds",
        900,
        replace(WELL, seen_at=NOON - 15 * MINUTE),
        True,
        "no exchange for 15 min, last at 2026-03-01 11:45:00 UTC",
    ),
    ("unseen_seconds", 900, replace(WELL, seen_at=NOON - 15 * MINUTE + SECOND), False, "exchanged again at"),
    (
        "unseen_seconds",
        900,
        ReporterInput(NOON - HOUR),
        True,
        "no exchange for 15 min, never since its enrolment",
    ),
    ("unseen_seconds", 900, ReporterInput(NOON - MINUTE, NOON - 50 * HOUR), False, "exchanged again"),
    ("lag_seconds", 600, WELL, False, "the spool is empty"),
    (
        "lag_seconds",
        600,
        replace(WELL, oldest_at=NOON - 11 * MINUTE),
        True,
        "the oldest record in the spool is 10 min old",
    ),
    ("lag_seconds", 600, replace(WELL, oldest_at=NOON - 5 * MINUTE), False, "the lag is 4 min"),
    # Silent for days: its lag is that of the last exchange.
    (
        "lag_seconds",
        600,
        replace(WELL, seen_at=NOON - 72 * HOUR, oldest_at=NOON - 72 * HOUR - MINUTE),
        False,
        "the lag is 1 min",
    ),
    ("dropped_records", 1, WELL, False, "0 records dropped within 24 h"),
    (
        "dropped_records",
        1,
        replace(WELL, drops=[Drop(NOON - HOUR, 1)]),
        True,
        "1 record dropped from the spool within 24 h; they never reached the depot",
    ),
    ("dropped_records", 7, replace(WELL, drops=[Drop(NOON - HOUR, 4), Drop(NOON, 3)]), True, "7 records"),
    ("dropped_records", 8, replace(WELL, drops=[Drop(NOON - HOUR, 4), Drop(NOON, 3)]), False, "7 records"),
    ("dropped_records", 1, replace(WELL, drops=[Drop(NOON - 24 * HOUR, 5)]), False, "0 records"),
    ("clock_offset_seconds", 30, WELL, False, "the clock is 0.01 s behind (within 0.05 s)"),
    (
        "clock_offset_seconds",
        30,
        replace(WELL, clock_offset_seconds=-40.0, clock_bound_seconds=2.0),
        True,
        "the clock is 40.0 s ahead (within 2.0 s)",
    ),
    (
        "clock_offset_seconds",
        30,
        replace(WELL, clock_offset_seconds=40.0, clock_bound_seconds=12.0),
        False,
        "the clock is 40.0 s behind",
    ),
    (
        "clock_offset_seconds",
        30,
        replace(WELL, clock_offset_seconds=None),
        False,
        "the offset of the clock is not known",
    ),
]


@pytest.mark.parametrize(("kind", "threshold", "reporter", "is_open", "text"), CASES)
def test_the_verdict_and_its_reason(
    kind: str, threshold: int, reporter: ReporterInput, is_open: bool, text: str
) -> None:
    verdict = reporter_conditions.condition(kind, threshold).judge(reporter, NOON)
    assert verdict.is_open is is_open
    assert text in verdict.text


def test_since_is_when_the_condition_began() -> None:
    def since(kind: str, reporter: ReporterInput) -> datetime | None:
        plug_in = reporter_conditions.load(kind)
        return reporter_conditions.condition(kind, plug_in.default).judge(reporter, NOON).since

    assert since("unseen_seconds", replace(WELL, seen_at=NOON - 2 * HOUR)) == NOON - 2 * HOUR
    assert since("lag_seconds", replace(WELL, oldest_at=NOON - 3 * HOUR)) == NOON - 3 * HOUR
    drops = [Drop(NOON - HOUR, 1), Drop(NOON, 1)]
    assert since("dropped_records", replace(WELL, drops=drops)) == NOON - HOUR
    assert since("clock_offset_seconds", replace(WELL, clock_offset_seconds=99.0)) == WELL.seen_at
