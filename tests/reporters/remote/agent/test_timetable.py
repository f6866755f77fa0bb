from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reporters.remote.agent.timetable import GRACE, PassedOver, Timetable, due_at
from reporters.remote.assignment import parse
from reporters.schedule import parse_schedule
from tests.reporters.remote.assignments import assignment, series

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def timetable(*each: dict[str, Any], cursor: datetime = NOON) -> tuple[Timetable, list[str]]:
    complaints: list[str] = []
    parsed = parse(json.dumps(assignment(*each)), "ncsa")
    return Timetable(parsed, cursor, complaints.append), complaints


def slots(table: Timetable, now: datetime) -> list[tuple[str, datetime]]:
    return [(due.series.name, due.slot) for due in table.due(now)[0]]


def test_a_slot_is_due_once_and_in_order() -> None:
    table, _ = timetable(series("b"), series("a", schedule="*/2 * * * *"))
    assert slots(table, NOON) == []
    assert table.next_slot() == NOON + MINUTE
    assert slots(table, NOON + 2 * MINUTE) == [
        ("b", NOON + MINUTE),
        ("a", NOON + 2 * MINUTE),
        ("b", NOON + 2 * MINUTE),
    ]
    assert slots(table, NOON + 2 * MINUTE) == []


@given(st.lists(st.integers(-7200, 7200), max_size=30))
def test_no_jump_of_the_clock_repeats_or_reorders_a_slot(steps: list[int]) -> None:
    """Each step is the seconds by which the clock changes between two looks."""
    table, _ = timetable()
    now, found = NOON, []
    for step in steps:
        now += timedelta(seconds=step)
        new = [slot for _, slot in slots(table, now)]
        assert all(now - GRACE <= slot <= now for slot in new)
        found += new
    assert found == sorted(set(found))


def test_while_the_clock_is_right_every_slot_of_the_schedule_is_due() -> None:
    table, _ = timetable(series(schedule="H/3 * * * *"))
    now, found = NOON, []
    while now < NOON + timedelta(hours=2):
        now += timedelta(seconds=17)
        found += [slot for _, slot in slots(table, now)]
    schedule = parse_schedule("H/3 * * * *", "noop-ncsa")
    assert found == list(schedule.slots(NOON, now))


def test_a_jump_forward_runs_no_burst_of_old_slots() -> None:
    table, _ = timetable()
    later = NOON + timedelta(hours=1)
    found, passed_over = table.due(later)
    assert [due.slot for due in found] == [later - MINUTE, later]
    assert passed_over == PassedOver(NOON, later - GRACE)


def test_nothing_is_passed_over_where_no_slot_was() -> None:
    table, _ = timetable(series(schedule="0 0 * * *"))
    assert table.due(NOON + timedelta(hours=1)) == ([], None)


def test_a_clock_that_was_wrong_is_set_back_on_purpose_only() -> None:
    table, _ = timetable(cursor=NOON + timedelta(days=365))
    assert slots(table, NOON + MINUTE) == []
    table.set_back(NOON)
    assert slots(table, NOON + MINUTE) == [("noop-ncsa", NOON + MINUTE)]


def test_a_delay_shifts_the_slots() -> None:
    table, _ = timetable(series(schedule="0 * * * *", delay_seconds=90))
    shifted = NOON + timedelta(seconds=90)
    assert slots(table, shifted - timedelta(seconds=1)) == []
    assert slots(table, shifted) == [("noop-ncsa", shifted)]
    assert table.next_slot() == shifted + timedelta(hours=1)


def test_a_follower_has_the_slots_of_a_leader_that_runs_here_only() -> None:
    here = series("here", after="lead", delay_seconds=600, schedule_name="lead")
    elsewhere = series("elsewhere", after="gone")
    table, _ = timetable(series("lead"), here, elsewhere)
    assert slots(table, NOON + MINUTE) == [("here", NOON + MINUTE), ("lead", NOON + MINUTE)]


def test_a_series_on_request_has_no_slots() -> None:
    table, complaints = timetable(series(schedule=""))
    assert table.next_slot() is None
    assert complaints == []


def test_the_jitter_is_that_of_the_ledger() -> None:
    """The formula of ``monitor.runs.ledger.expand``, by its result for one slot."""
    one = parse(json.dumps(assignment(series(jitter_seconds=300))), "ncsa").series["noop-ncsa"]
    times = {due_at(one, NOON + number * MINUTE) - (NOON + number * MINUTE) for number in range(200)}
    assert min(times) >= timedelta(0)
    assert max(times) <= timedelta(seconds=300)
    assert len(times) > 50
    assert due_at(one, NOON) == due_at(one, NOON)
