"""Slots of a schedule: clocks of all zones, windows, starts and ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reporters.schedule import InvalidSchedule, Schedule, find_zone, parse_schedule
from tests.reporters import simulated_year, slot_oracle
from tests.reporters.expressions import expressions, unless_never

ROOT = Path(__file__).parents[2]
TABLE = (Path(__file__).parent / "data" / "schedules.txt").read_text(encoding="utf-8")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_OF_MARCH = datetime(2026, 3, 1, tzinfo=UTC)
NO_ZONE = NEW_YEAR.replace(tzinfo=None)
DAY = timedelta(days=1)
ODD_ZONES = [
    "Africa/Cairo",  # changes at midnight
    "Africa/Casablanca",  # back for Ramadan
    "America/Goose_Bay",  # changed at a minute past midnight
    "America/Sao_Paulo",  # had no midnight once a year, and 23:00 twice
    "America/St_Johns",
    "Antarctica/Troll",  # two hours at once
    "Asia/Gaza",
    "Australia/Lord_Howe",  # half an hour
    "Europe/Berlin",
    "Europe/Dublin",  # winter is the exception
    "Pacific/Apia",  # had no 30 December 2011
    "Pacific/Chatham",
]


def cases() -> list[list[str]]:
    lines = [line for line in TABLE.splitlines() if line and not line.startswith("#")]
    return [[part.strip() for part in line.split("|")] for line in lines]


def drawn(expression: str, zone: str) -> Schedule:
    return unless_never(lambda: parse_schedule(expression, "gather-main", zone=zone))


@pytest.mark.parametrize(("expression", "zone", "after", "slots"), cases())
def test_an_expression_has_these_slots(expression: str, zone: str, after: str, slots: str) -> None:
    expected = [datetime.fromisoformat(slot) for slot in slots.split()]
    schedule = parse_schedule(expression, "gather-main", zone=zone)
    assert list(schedule.slots(datetime.fromisoformat(after), expected[-1])) == expected


def test_every_slot_of_a_year_occurs_once_in_all_zones() -> None:
    for series in simulated_year.simulated_series(len(simulated_year.zones()) // 5):  # the bench has them all
        assert np.array_equal(simulated_year.expanded(series), simulated_year.expected(series)), series


@settings(deadline=None)  # the first example of a zone searches for all its changes
@given(expressions(), st.sampled_from(ODD_ZONES), st.data())
def test_around_clock_changes_a_slot_is_due_when_the_clock_first_shows_or_skips_its_minute(
    expression: str, zone: str, data: st.DataObject
) -> None:
    schedule = drawn(expression, zone)
    near = data.draw(st.sampled_from(changes(zone)))
    after = near + data.draw(st.integers(-3000, 1500)) * slot_oracle.MINUTE
    until = after + data.draw(st.integers(0, 4000)) * slot_oracle.MINUTE
    slots = [slot_oracle.minute(slot) for slot in schedule.slots(after, until)]
    assert slots == slot_oracle.due(schedule.cron.text, schedule.clock, after, until).tolist()


@given(
    expressions(),
    st.sampled_from(ODD_ZONES),
    st.lists(st.integers(0, 60 * 24 * 3600), min_size=2, max_size=9),
)
def test_adjoining_windows_together_have_each_slot_once(
    expression: str, zone: str, borders: list[int]
) -> None:
    schedule = drawn(expression, zone)
    first, *rest = [FIRST_OF_MARCH + timedelta(seconds=second) for second in sorted(borders)]
    pieces, after = [], first
    for until in rest:
        pieces += list(schedule.slots(after, until))
        after = until
    assert pieces == list(schedule.slots(first, rest[-1]))
    assert len(set(pieces)) == len(pieces)


@lru_cache
def changes(zone: str) -> list[datetime]:
    """Return the days from 1990 to 2037 on which the clock changes."""
    clock, first = find_zone(zone), datetime(1990, 1, 1, tzinfo=UTC)
    days = [first + n * DAY for n in range(48 * 365)]
    offsets = [day.astimezone(clock).utcoffset() for day in days]
    return [day for day, before, behind in zip(days, offsets, offsets[1:], strict=False) if before != behind]


def test_a_window_includes_the_slot_at_its_end_and_excludes_the_slot_at_its_start() -> None:
    schedule = parse_schedule("0 * * * *", "gather-main")
    hour = timedelta(hours=1)
    assert list(schedule.slots(NEW_YEAR, NEW_YEAR + hour)) == [NEW_YEAR + hour]
    assert list(schedule.slots(NEW_YEAR - timedelta.resolution, NEW_YEAR)) == [NEW_YEAR]
    assert list(schedule.slots(NEW_YEAR, NEW_YEAR)) == list(schedule.slots(NEW_YEAR, NEW_YEAR - DAY)) == []


def test_a_clock_set_back_across_midnight_does_not_repeat_midnights_slot() -> None:
    schedule = parse_schedule("0 0 * * *", "gather-main", zone="America/Goose_Bay")
    midnight = datetime(2010, 11, 7, 3, tzinfo=UTC)  # the clock goes back to 23:01 a minute later
    half_an_hour = timedelta(minutes=30)
    assert list(schedule.slots(midnight - half_an_hour, midnight + half_an_hour)) == [midnight]
    assert list(schedule.slots(midnight + half_an_hour, midnight + 2 * half_an_hour)) == []


def test_the_start_and_the_end_of_a_schedule_are_included() -> None:
    starts_at, ends_at = NEW_YEAR + timedelta(hours=2), NEW_YEAR + timedelta(hours=4)
    schedule = parse_schedule("0 * * * *", "gather-main", starts_at=starts_at, ends_at=ends_at)
    slots = list(schedule.slots(NEW_YEAR, NEW_YEAR + DAY))
    assert slots == [starts_at, starts_at + timedelta(hours=1), ends_at]
    assert schedule.next_after(NEW_YEAR) == starts_at
    assert schedule.next_after(ends_at) is None


def test_the_next_slot_may_be_decades_away_and_there_is_none_after_year_9999() -> None:
    sunday_29_february = parse_schedule("0 0 29 2 */7", "gather-main", zone="Europe/Berlin")
    assert sunday_29_february.next_after(datetime(2088, 3, 1, tzinfo=UTC)) == datetime(
        2128, 2, 28, 23, tzinfo=UTC
    )
    assert sunday_29_february.next_after(datetime.max.replace(tzinfo=UTC)) is None
    first = sunday_29_february.next_after(datetime.min.replace(tzinfo=UTC))
    assert first is not None
    assert first.year < 41


def test_slots_are_in_utc_whatever_the_zone_of_the_window() -> None:
    schedule = parse_schedule("30 2 * * *", "gather-main", zone="Asia/Kolkata")
    after = NEW_YEAR.astimezone(find_zone("America/St_Johns"))
    (slot,) = schedule.slots(after, after + DAY)
    assert slot.isoformat() == "2026-01-01T21:00:00+00:00"


def test_a_window_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a time with a zone"):
        next(parse_schedule("@daily", "gather-main").slots(NO_ZONE, NEW_YEAR))


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("Amerika/New_York", "did you mean America/New_York?"),
        ("new_york", "did you mean America/New_York?"),
        ("UTC+2", "expected an IANA name"),
        ("", "time zone '': expected an IANA name"),
        ("America", "expected an IANA name"),
        ("localtime", "expected an IANA name"),  # differs between machines
        ("/etc/localtime", "expected an IANA name"),
        ("../../etc/passwd", "expected an IANA name"),
        ("Europe/Berlin\0", "expected an IANA name"),
        ("\ud800", "expected an IANA name"),
        ("x" * 1_000_000, "expected an IANA name"),
    ],
    ids=lambda text: text[:30].encode("unicode_escape").decode(),
)
def test_an_unknown_zone_is_refused_with_the_most_similar_name(zone: str, message: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        parse_schedule("@daily", "gather-main", zone=zone)
    assert message in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("starts_at", "ends_at", "message"),
    [
        (NEW_YEAR, NEW_YEAR - DAY, "ends_at 2025-12-31T00:00:00+00:00 is before starts_at"),
        (NO_ZONE, None, "starts_at: expected a time with a zone, got 2026-01-01T00:00:00"),
        (None, NO_ZONE, "ends_at: expected a time with a zone"),
    ],
)
def test_an_end_before_the_start_and_times_without_a_zone_are_refused(
    starts_at: datetime | None, ends_at: datetime | None, message: str
) -> None:
    with pytest.raises(InvalidSchedule, match=re.escape(message)):
        parse_schedule("@daily", "gather-main", starts_at=starts_at, ends_at=ends_at)


def test_without_a_zone_database_utc_works_and_other_zones_name_the_package() -> None:
    program = """if True:
        from reporters.schedule import NoZoneDatabase, parse_schedule
        print(parse_schedule("30 2 * * *", "gather-main").cron.text)
        try:
            parse_schedule("30 2 * * *", "gather-main", zone="Europe/Berlin")
        except NoZoneDatabase as error:
            print(error)
    """
    # -S hides the package tzdata.
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONTZPATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    plain, message = done.stdout.splitlines()
    assert plain == "30 2 * * *"
    assert "'Europe/Berlin': this machine has no time zone database" in message
    assert "install the package tzdata" in message
