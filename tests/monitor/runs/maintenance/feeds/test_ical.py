"""iCalendar feeds: times, recurrences, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.runs.maintenance.feeds.base import InvalidFeed
from monitor.runs.maintenance.feeds.ical import Feed
from tests.monitor.runs.maintenance.feeds.builders import HORIZON, calendar, event

START, TWO_HOURS = "DTSTART:20260301T100000Z", "DURATION:PT2H"
ZONE = [
    *("BEGIN:VTIMEZONE", "TZID:Office", "BEGIN:STANDARD", "DTSTART:16010101T000000"),
    *("TZOFFSETFROM:+0500", "TZOFFSETTO:+0500", "END:STANDARD", "END:VTIMEZONE"),
]


def periods(data: bytes) -> list[tuple[str, str]]:
    windows = Feed().parse(data, HORIZON).windows
    return [(f"{window.starts_at:%m-%d %H:%M}", f"{window.ends_at:%m-%d %H:%M}") for window in windows]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([START, "DTEND:20260301T120000Z"], [("03-01 10:00", "03-01 12:00")], id="UTC"),
        pytest.param([START, TWO_HOURS], [("03-01 10:00", "03-01 12:00")], id="duration"),
        pytest.param(
            ["DTSTART;TZID=Europe/Berlin:20260701T100000", TWO_HOURS],
            [("07-01 08:00", "07-01 10:00")],
            id="a time zone without its definition",
        ),
        pytest.param(
            ["DTSTART;TZID=Office:20260301T100000", TWO_HOURS],
            [("03-01 05:00", "03-01 07:00")],
            id="a time zone that only the file defines",
        ),
        pytest.param(
            ["DTSTART:20260301T100000", TWO_HOURS],
            [("03-01 18:00", "03-01 20:00")],
            id="the time zone of the calendar",
        ),
        pytest.param(["DTSTART;VALUE=DATE:20260301"], [("03-01 08:00", "03-02 08:00")], id="a whole day"),
        pytest.param(
            ["DTSTART;VALUE=DATE:20260301", "DTEND;VALUE=DATE:20260303"],
            [("03-01 08:00", "03-03 08:00")],
            id="two whole days",
        ),
        pytest.param([START, TWO_HOURS, "STATUS:CANCELLED"], [], id="cancelled"),
        pytest.param([START], [], id="without a duration"),
        pytest.param(["DTSTART:20200301T100000Z", TWO_HOURS], [], id="long over"),
        pytest.param(
            ["DTSTART;TZID=Europe/Berlin:20260322T100000", TWO_HOURS, "RRULE:FREQ=WEEKLY;COUNT=2"],
            [("03-22 09:00", "03-22 11:00"), ("03-29 08:00", "03-29 10:00")],
            id="weekly at the same local time, over a change of clocks",
        ),
        pytest.param(
            [START, TWO_HOURS, "RRULE:FREQ=DAILY;UNTIL=20260303T100000Z", "EXDATE:20260302T100000Z"],
            [("03-01 10:00", "03-01 12:00"), ("03-03 10:00", "03-03 12:00")],
            id="daily with an exception",
        ),
        pytest.param(
            [START, TWO_HOURS, "RDATE:20260305T100000Z"],
            [("03-01 10:00", "03-01 12:00"), ("03-05 10:00", "03-05 12:00")],
            id="a second date",
        ),
        pytest.param(
            ["DTSTART:20250107T100000Z", TWO_HOURS, "RRULE:FREQ=MONTHLY;BYDAY=1TU;COUNT=14"],
            [("01-06 10:00", "01-06 12:00"), ("02-03 10:00", "02-03 12:00")],
            id="a count that began before the period",
        ),
    ],
)
def test_an_event_becomes_the_windows_of_its_times(lines: list[str], expected: list[tuple[str, str]]) -> None:
    head = ["X-WR-TIMEZONE:America/Los_Angeles", *ZONE]
    assert periods(calendar(event(*lines), head=head)) == expected


def test_an_endless_weekly_event_is_expanded_to_the_end_of_the_period() -> None:
    data = calendar(event("DTSTART:20200301T100000Z", TWO_HOURS, "RRULE:FREQ=WEEKLY"))
    windows = Feed().parse(data, HORIZON).windows
    assert (len(windows), windows[-1].starts_at) == (61, datetime(2027, 2, 28, 10, tzinfo=UTC))


def test_single_occurrences_are_moved_and_cancelled() -> None:
    weekly = event(START, TWO_HOURS, "RRULE:FREQ=WEEKLY;COUNT=3")
    moved = event("RECURRENCE-ID:20260308T100000Z", "DTSTART:20260309T100000Z", TWO_HOURS)
    cancelled = event("RECURRENCE-ID:20260315T100000Z", "DTSTART:20260315T100000Z", "STATUS:CANCELLED")
    content = Feed().parse(calendar(weekly, moved, cancelled), HORIZON)
    assert [(window.uid, window.starts_at.day) for window in content.windows] == [
        ("disks/20260301T100000Z", 1),
        ("disks/20260308T100000Z", 9),
    ]
    assert content.left_out["cancelled"] == 1


def test_all_later_occurrences_are_moved() -> None:
    weekly = event(START, TWO_HOURS, "RRULE:FREQ=WEEKLY;COUNT=4")
    later = event("RECURRENCE-ID;RANGE=THISANDFUTURE:20260315T100000Z", "DTSTART:20260315T120000Z", TWO_HOURS)
    windows = Feed().parse(calendar(weekly, later), HORIZON).windows
    assert [(window.starts_at.day, window.starts_at.hour) for window in windows] == [
        *((1, 10), (8, 10), (15, 12), (22, 12)),
    ]
    assert len({window.uid for window in windows}) == 4


def test_categories_and_the_location_may_name_sites() -> None:
    data = calendar(event(START, TWO_HOURS, "CATEGORIES:sdsc,Maintenance", "LOCATION:NCSA\\, room 2"))
    (window,) = Feed().parse(data, HORIZON).windows
    assert window.sites == {"sdsc", "Maintenance", "NCSA", "room 2"}
    assert (window.uid, window.title, window.line) == ("disks", "New disks", 4)


def test_folded_lines_and_newer_versions_of_an_event_are_read() -> None:
    data = calendar(
        ["BEGIN:VEVENT", "UID:disks", "SUMMARY:New", "  disks", START, TWO_HOURS, "END:VEVENT"],
        event("SEQUENCE:1", "DTSTART:20260302T100000Z", TWO_HOURS),
    )
    assert periods(data) == [("03-02 10:00", "03-02 12:00")]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([START, TWO_HOURS, "RRULE:FREQ=SECONDLY"], "line 9: RRULE: more often than 4 times a day"),
        ([START, TWO_HOURS, "RRULE:FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=1,2"], "line 9: RRULE: more often"),
        ([START, TWO_HOURS, "RRULE:FREQ=DAILY;BYHOUR=1,2,3"], "line 9: RRULE: more than 1,000 occurrences"),
        ([START, TWO_HOURS, "RRULE:FREQ=DAILY;INTERVAL=0"], "line 9: RRULE: INTERVAL: expected a number"),
        ([START, TWO_HOURS, "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"], "line 9: RRULE: the rule never"),
        ([START, TWO_HOURS, "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"], "line 9: RRULE: expected a simple"),
        ([START, TWO_HOURS, "RRULE:FREQ=WEEKLY;BYDAY=XX"], "line 9: RRULE: "),
        ([START, TWO_HOURS, "RRULE:WEEKLY"], "line 9: RRULE: expected parts such as"),
        ([START, TWO_HOURS, "RRULE:FREQ=WEEKLY;UNTIL=tomorrow"], "line 9: RRULE: Wrong date format tomorrow"),
        ([START, TWO_HOURS, "RRULE:FREQ=WEEKLY", "RRULE:FREQ=DAILY"], "line 10: expected one RRULE"),
        (["DTSTART:19000101T000000Z", TWO_HOURS, "RRULE:FREQ=DAILY"], "line 9: a recurring event starts"),
        (["DTSTART:2026-03-01", TWO_HOURS], "line 7: DTSTART"),
        (["DTSTART;TZID=Nowhere:20260301T100000", TWO_HOURS], "line 7: DTSTART: unknown time zone 'Nowhere'"),
        ([START, "DTEND:20260301T090000Z"], "line 8: the end 2026-03-01T09:00:00+00:00 is before the start"),
        ([START, "DTEND;VALUE=DATE:20260302"], "line 8: DTEND: expected a date or a time"),
        ([START, "DURATION:-PT2H"], "line 8: DURATION: expected a duration of at least 0"),
        ([TWO_HOURS], "line 4: the event has no DTSTART"),
        (["no content line"], "line 7: expected NAME:value"),
        (["END:VTODO"], "line 7: END:VTODO ends a component that is not open"),
    ],
)
def test_an_event_that_is_refused_names_line_and_reason(lines: list[str], reason: str) -> None:
    with pytest.raises(InvalidFeed) as refused:
        Feed().parse(calendar(event(*lines)), HORIZON)
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"\x00\x01\x02BEGIN", "line 1: this is no text", id="binary"),
        pytest.param(b"BEGIN:VCALENDAR\r\nX:\xff\xfe", "line 2: this is no text in UTF-8", id="not UTF-8"),
        pytest.param(b"<results/>", "line 1: expected NAME:value", id="XML"),
        pytest.param(b"BEGIN:VCALENDAR\r\n" * 9, "line 6: components are nested deeper", id="nested"),
        pytest.param(calendar()[:-15], "the file is truncated", id="truncated"),
        pytest.param(calendar() * 2, "line 5: expected one calendar", id="two calendars"),
        pytest.param(b"A" * (16 * 1024 * 1024 + 1), "the file is larger than", id="huge"),
        pytest.param(
            calendar(event(START, TWO_HOURS), event(START, TWO_HOURS)),
            "line 10: UID 'disks' is that of the event in line 4 too",
            id="the same UID twice",
        ),
        pytest.param(
            calendar(["BEGIN:VEVENT", START, "END:VEVENT"]), "line 4: the event has no UID", id="no UID"
        ),
        pytest.param(
            calendar(head=[*ZONE[:-2], "RRULE:FREQ=SECONDLY", *ZONE[-2:]]),
            "line 10: RRULE of a time zone: expected FREQ=YEARLY",
            id="an endless rule in a time zone",
        ),
        pytest.param(
            calendar(head=["X-WR-TIMEZONE:../../etc/passwd"]),
            "X-WR-TIMEZONE: unknown time zone",
            id="no time zone",
        ),
    ],
)
def test_a_hostile_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidFeed) as refused:
        Feed().parse(data, HORIZON)
    assert str(refused.value).startswith(reason)


def test_too_many_occurrences_are_refused_before_they_are_expanded() -> None:
    lines = (START, TWO_HOURS, "RRULE:FREQ=DAILY")
    data = calendar(*(event(*lines, uid=f"event-{number}") for number in range(60)))
    with pytest.raises(InvalidFeed, match="more than 20,000 windows"):
        Feed().parse(data, HORIZON)


def test_many_recurring_events_that_began_long_ago_are_refused() -> None:
    lines = ("DTSTART:19700101T000000Z", TWO_HOURS, "RRULE:FREQ=DAILY;COUNT=2")
    data = calendar(*(event(*lines, uid=f"event-{number}") for number in range(30)))
    with pytest.raises(InvalidFeed, match="too many, or began too long ago"):
        Feed().parse(data, HORIZON)
