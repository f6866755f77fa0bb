"""When maintenance windows are open, as tables of cases; no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs.maintenance.times import (
    Occurrence,
    WindowTimes,
    end_before,
    next_after,
    occurrences,
    open_at,
    time_errors,
)
from reporters.schedule import InvalidSchedule

HOUR = 3600


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def occurrence(text: str) -> Occurrence | None:
    """``2026-03-01 08:00 2026-03-01 09:00``, or nothing."""
    return Occurrence(at(text[:16]), at(text[17:])) if text else None


ONCE = WindowTimes(at("2026-03-01 08:00"), at("2026-03-02 08:00"))
TUESDAYS = WindowTimes(schedule="0 8 * * tue", duration_seconds=4 * HOUR)
NIGHTS = WindowTimes(schedule="0 22 * * *", duration_seconds=4 * HOUR)
BACK_TO_BACK = WindowTimes(schedule="0 0 * * *", duration_seconds=24 * HOUR)
FEBRUARY = WindowTimes(at("2026-02-01 00:00"), at("2026-02-24 08:00"), "0 8 * * tue", "UTC", 4 * HOUR)
# Clocks in Berlin are changed on 29 March 2026, from 02:00 to 03:00, and on 25 October; both at 01:00 UTC.
AT_TWO = WindowTimes(schedule="0 2 * * *", timezone="Europe/Berlin", duration_seconds=2 * HOUR)
HALF_PAST_TWO = WindowTimes(schedule="30 2 * * *", timezone="Europe/Berlin", duration_seconds=HOUR)
BERLIN_DAYS = WindowTimes(schedule="0 0 * * *", timezone="Europe/Berlin", duration_seconds=24 * HOUR)


@pytest.mark.parametrize(
    ("times", "now", "expected"),
    [
        (ONCE, "2026-03-01 07:59", ""),
        (ONCE, "2026-03-01 08:00", "2026-03-01 08:00 2026-03-02 08:00"),
        (ONCE, "2026-03-02 07:59", "2026-03-01 08:00 2026-03-02 08:00"),
        (ONCE, "2026-03-02 08:00", ""),
        (TUESDAYS, "2026-03-03 07:59", ""),
        (TUESDAYS, "2026-03-03 08:00", "2026-03-03 08:00 2026-03-03 12:00"),
        (TUESDAYS, "2026-03-03 11:59", "2026-03-03 08:00 2026-03-03 12:00"),
        (TUESDAYS, "2026-03-03 12:00", ""),
        (TUESDAYS, "2026-03-04 09:00", ""),
        # Over midnight, the end of a month, and of a year.
        (NIGHTS, "2026-02-28 23:59", "2026-02-28 22:00 2026-03-01 02:00"),
        (NIGHTS, "2026-03-01 01:59", "2026-02-28 22:00 2026-03-01 02:00"),
        (NIGHTS, "2026-03-01 02:00", ""),
        (NIGHTS, "2026-01-01 00:30", "2025-12-31 22:00 2026-01-01 02:00"),
        # Without a gap: each occurrence starts when the previous one ends.
        (BACK_TO_BACK, "2026-03-01 23:59", "2026-03-01 00:00 2026-03-02 00:00"),
        (BACK_TO_BACK, "2026-03-02 00:00", "2026-03-02 00:00 2026-03-03 00:00"),
        # The bounds apply to starts: the last occurrence has its full duration.
        (FEBRUARY, "2026-01-27 09:00", ""),
        (FEBRUARY, "2026-02-03 09:00", "2026-02-03 08:00 2026-02-03 12:00"),
        (FEBRUARY, "2026-02-24 11:00", "2026-02-24 08:00 2026-02-24 12:00"),
        (FEBRUARY, "2026-03-03 09:00", ""),
        # In winter, and on the day on which its start does not exist: it lasts two hours all the same.
        (AT_TWO, "2026-03-28 02:59", "2026-03-28 01:00 2026-03-28 03:00"),
        (AT_TWO, "2026-03-29 00:59", ""),
        (AT_TWO, "2026-03-29 01:00", "2026-03-29 01:00 2026-03-29 03:00"),
        (AT_TWO, "2026-03-29 03:00", ""),
        (AT_TWO, "2026-03-30 00:00", "2026-03-30 00:00 2026-03-30 02:00"),
        (HALF_PAST_TWO, "2026-03-29 01:00", "2026-03-29 01:00 2026-03-29 02:00"),
        (HALF_PAST_TWO, "2026-03-29 02:00", ""),
        # A local time that exists twice means the first one.
        (HALF_PAST_TWO, "2026-10-25 00:30", "2026-10-25 00:30 2026-10-25 01:30"),
        (HALF_PAST_TWO, "2026-10-25 01:29", "2026-10-25 00:30 2026-10-25 01:30"),
        (HALF_PAST_TWO, "2026-10-25 01:30", ""),
        # A day of 23 hours: two windows overlap, and the later end holds.
        (BERLIN_DAYS, "2026-03-29 22:30", "2026-03-29 22:00 2026-03-30 22:00"),
        # A day of 25 hours: there is one between them.
        (BERLIN_DAYS, "2026-10-25 21:59", "2026-10-24 22:00 2026-10-25 22:00"),
        (BERLIN_DAYS, "2026-10-25 22:30", ""),
        (BERLIN_DAYS, "2026-10-25 23:00", "2026-10-25 23:00 2026-10-26 23:00"),
    ],
)
def test_the_open_occurrence(times: WindowTimes, now: str, expected: str) -> None:
    assert open_at(times, at(now)) == occurrence(expected)


@pytest.mark.parametrize(
    ("times", "now", "expected"),
    [
        (ONCE, "2026-02-28 00:00", "2026-03-01 08:00 2026-03-02 08:00"),
        (ONCE, "2026-03-01 08:00", ""),
        (TUESDAYS, "2026-03-03 08:00", "2026-03-10 08:00 2026-03-10 12:00"),
        (FEBRUARY, "2026-01-01 00:00", "2026-02-03 08:00 2026-02-03 12:00"),
        (FEBRUARY, "2026-02-24 08:00", ""),
        (AT_TWO, "2026-03-28 12:00", "2026-03-29 01:00 2026-03-29 03:00"),
    ],
)
def test_the_next_occurrence_starts_later(times: WindowTimes, now: str, expected: str) -> None:
    assert next_after(times, at(now)) == occurrence(expected)


@given(
    now=st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    schedule=st.sampled_from(["30 2 * * *", "0 0 * * sun", "*/20 1-3 * * *", "0 0 29 2 *"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"]),
    seconds=st.integers(1, 1200),
)
def test_the_next_occurrence_is_open_from_its_start_until_just_before_its_end(
    now: datetime, schedule: str, zone: str, seconds: int
) -> None:
    times = WindowTimes(schedule=schedule, timezone=zone, duration_seconds=seconds)
    assert not list(time_errors(times))
    coming = next_after(times, now)
    assert coming is not None
    assert open_at(times, coming.starts_at) == coming
    assert open_at(times, coming.ends_at - timedelta.resolution) == coming
    assert open_at(times, coming.ends_at) != coming


@pytest.mark.parametrize("times", [ONCE, TUESDAYS, NIGHTS, FEBRUARY, AT_TWO, HALF_PAST_TWO])
def test_valid_times_have_no_errors(times: WindowTimes) -> None:
    assert list(time_errors(times)) == []


@pytest.mark.parametrize(
    ("schedule", "seconds", "fits"),
    [
        ("0 * * * *", HOUR - 1, True),
        ("0 8,18 * * *", 12 * HOUR, False),
        ("0 8,18 * * *", 10 * HOUR, True),
        ("0 22,23 * * mon,tue", HOUR + 1, False),
        ("0 0 1 * *", 28 * 24 * HOUR, True),
        ("0 0 1 * *", 28 * 24 * HOUR + 1, False),
        ("0 0 1 jan *", 365 * 24 * HOUR, True),
        ("0 0 1,2 jan *", 24 * HOUR + 1, False),
        ("0 0 29 feb *", 365 * 24 * HOUR, True),
    ],
)
def test_an_occurrence_longer_than_the_gap_to_the_next_is_an_error(
    schedule: str, seconds: int, fits: bool
) -> None:
    fields = [key for key, _ in time_errors(WindowTimes(schedule=schedule, duration_seconds=seconds))]
    assert fields == ([] if fits else ["duration_seconds"])


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        ("0 * * * *", HOUR),
        ("0 * * * *", 2 * HOUR),
        ("0 8,20 * * *", 12 * HOUR),
        ("0 0 * * *", 24 * HOUR),
        ("0 8 * * tue", 8 * 24 * HOUR),
    ],
)
def test_a_window_that_never_closes_is_an_error(schedule: str, seconds: int) -> None:
    ((key, message),) = time_errors(WindowTimes(schedule=schedule, duration_seconds=seconds))
    assert key == "duration_seconds"
    assert "would always be open" in message


@pytest.mark.parametrize(
    ("schedule", "openings"), [("* * * * *", "1,440"), ("*/5 8-10 * * *", "36"), ("0,30 * 1 1 *", "48")]
)
def test_a_window_that_opens_more_than_hourly_is_an_error(schedule: str, openings: str) -> None:
    ((key, message),) = time_errors(WindowTimes(schedule=schedule, duration_seconds=60))
    assert key == "schedule"
    assert f"opens the window {openings} times a day; expected at most 24" in message


def test_occurrences_that_meet_are_joined() -> None:
    minutes = WindowTimes(schedule="* 8,12 * * *", duration_seconds=60)
    assert list(occurrences(minutes, at("2026-03-01 08:30"), at("2026-03-02 00:00"))) == [
        occurrence("2026-03-01 08:30 2026-03-01 09:00"),
        occurrence("2026-03-01 12:00 2026-03-01 13:00"),
    ]


@pytest.mark.parametrize(
    "schedule", ["H 8 * * *", "0 h * * *", "? 8 * * 1", "0 H(1-3) * * *", "@daily", "@weekly"]
)
def test_a_hashed_schedule_is_an_error(schedule: str) -> None:
    ((key, message),) = time_errors(WindowTimes(schedule=schedule, duration_seconds=HOUR))
    assert key == "schedule"
    assert "hashed" in message


@pytest.mark.parametrize("schedule", ["0  8 * * THU", "0 8 * mar-oct/2 *", " 5,10 8 1-7 * 0-7 "])
def test_names_with_an_h_and_any_spaces_are_not_hashed(schedule: str) -> None:
    assert list(time_errors(WindowTimes(schedule=schedule, duration_seconds=60))) == []


def test_an_invalid_schedule_raises_when_it_is_evaluated() -> None:
    with pytest.raises(InvalidSchedule, match="Europe/Berln"):
        open_at(
            WindowTimes(schedule="0 8 * * *", timezone="Europe/Berln", duration_seconds=60),
            at("2026-03-01 08:00"),
        )


@pytest.mark.parametrize(
    ("times", "now", "expected"),
    [
        (ONCE, "2026-03-02 07:59", ""),
        (ONCE, "2026-03-02 08:00", "2026-03-02 08:00"),
        (ONCE, "2027-03-02 07:59", "2026-03-02 08:00"),
        (ONCE, "2027-03-04 08:00", ""),
        (TUESDAYS, "2026-03-03 12:00", "2026-03-03 12:00"),
        (TUESDAYS, "2026-03-10 11:59", "2026-03-03 12:00"),
        (BACK_TO_BACK, "2026-03-01 23:59", "2026-03-01 00:00"),
        (FEBRUARY, "2026-02-03 11:59", ""),
        (FEBRUARY, "2026-12-31 00:00", "2026-02-24 12:00"),
        (FEBRUARY, "2027-12-31 00:00", ""),
        (WindowTimes(schedule="0 8 1 1 *", duration_seconds=HOUR), "2026-12-31 00:00", "2026-01-01 09:00"),
    ],
)
def test_the_last_end_of_a_year(times: WindowTimes, now: str, expected: str) -> None:
    assert end_before(times, at(now)) == (at(expected) if expected else None)
