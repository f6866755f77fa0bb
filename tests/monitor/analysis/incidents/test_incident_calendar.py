"""The calendar of incidents: days, months and spans, in the zone of the reader."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from monitor.analysis.incidents.by_day import MOST_A_DAY, IncidentSpan, first_of_month, month_of

MARCH = date(2026, 3, 1)
NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "first"),
    [("2025-12", date(2025, 12, 1)), ("", MARCH), ("2026-13", MARCH), ("x-y", MARCH), ("9999999-1", MARCH)],
)
def test_any_other_text_than_a_month_is_this_month(text: str, first: date) -> None:
    assert first_of_month(text, date(2026, 3, 20)) == first


def test_a_month_has_whole_weeks() -> None:
    month = month_of([], MARCH, UTC, NOW)
    days = [day for week in month.weeks for day in week]
    assert (days[0].day, days[-1].day, len(days)) == (date(2026, 2, 23), date(2026, 4, 5), 42)
    assert [day.day for day in days if day.is_today] == [NOW.date()]
    assert (month.previous, month.following) == (date(2026, 2, 1), date(2026, 4, 1))


@pytest.mark.parametrize(
    ("resolved_at", "zone", "days"),
    [
        (datetime(2026, 3, 6, 1, 0, tzinfo=UTC), "UTC", [4, 5, 6]),
        (datetime(2026, 3, 6, 1, 0, tzinfo=UTC), "America/Chicago", [4, 5]),
        (datetime(2026, 3, 4, 23, 30, tzinfo=UTC), "UTC", [4]),
        (None, "UTC", list(range(4, 21))),  # open until now
    ],
)
def test_an_incident_is_on_every_day_on_which_it_was_open(
    resolved_at: datetime | None, zone: str, days: list[int]
) -> None:
    shown = IncidentSpan(1, datetime(2026, 3, 4, 23, 0, tzinfo=UTC), resolved_at)
    month = month_of([shown], MARCH, ZoneInfo(zone), NOW)
    listed = [(day, key) for week in month.weeks for day in week for key in day.listed]
    found = [(day.day.day, key in day.begins) for day, key in listed]
    assert found == [(day, day == days[0]) for day in days]
    assert month.incidents == 1


def test_a_day_lists_some_of_its_incidents_and_counts_the_others() -> None:
    spans = [IncidentSpan(key, NOW, NOW) for key in range(MOST_A_DAY + 7)]
    month = month_of(spans, MARCH, UTC, NOW)
    (today,) = (day for week in month.weeks for day in week if day.incidents)
    assert (len(today.listed), today.more, month.incidents) == (MOST_A_DAY, 7, MOST_A_DAY + 7)
    assert month.listed == set(range(MOST_A_DAY))
