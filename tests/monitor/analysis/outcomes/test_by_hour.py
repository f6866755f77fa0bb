"""Failures by weekday and hour, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User

from monitor.analysis.outcomes.by_hour import HourCount, clock_of, count_by_hour
from monitor.analysis.outcomes.read import RunOutcomes
from monitor.models import Run, Series
from monitor.models.run import State
from monitor.web.charts.week_table import failure_week
from reporters import report as wire

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def run(series: Series, slot: datetime, state: str) -> None:
    Run.objects.create(id=wire.run_id(series.name, slot), series=series, slot=slot, due_at=slot, state=state)


def test_runs_are_counted_by_weekday_and_hour_of_their_slot_in_utc(circle: Series) -> None:
    east = timezone(timedelta(hours=9))
    run(circle, MONDAY, State.PASSED)
    run(circle, MONDAY + timedelta(minutes=59), State.FAILED)
    run(circle, MONDAY + timedelta(days=7), State.TIMED_OUT)  # the next Monday
    run(circle, datetime(2026, 3, 9, 8, tzinfo=east), State.BROKEN)  # Sunday 23:00 UTC
    outcomes = RunOutcomes(User(is_superuser=True), MONDAY - timedelta(days=1), MONDAY + timedelta(days=8))
    counts = count_by_hour(outcomes)
    assert (len(counts), {len(day) for day in counts}) == (7, {24})
    assert counts[0][0] == HourCount(runs=3, failed=2)
    assert counts[6][23] == HourCount(runs=1, failed=1)
    assert sum(count.runs for day in counts for count in day) == 4


def test_the_hours_of_a_zone_are_shown_if_they_are_those_of_utc() -> None:
    tokyo, delhi = ZoneInfo("Asia/Tokyo"), ZoneInfo("Asia/Kolkata")
    assert clock_of(tokyo, MONDAY) is tokyo
    assert clock_of(delhi, MONDAY) is UTC  # half an hour between


def test_cells_say_in_words_what_their_shades_mean() -> None:
    counts = [[HourCount() for _ in range(24)] for _ in range(7)]
    counts[0][13], counts[2][5], counts[6][23] = HourCount(1000, 100), HourCount(10, 0), HourCount(4, 1)
    drawn = failure_week(counts)
    assert 'class="f-2" title="Monday 13:00, 100 of 1,000 failed, 10 %"' in drawn
    assert 'class="f-0" title="Wednesday 05:00, 0 of 10 failed, 0 %"' in drawn
    assert 'class="f-4" title="Sunday 23:00, 1 of 4 failed, 25 %"' in drawn
    assert 'class="f-none" title="Sunday 22:00, no runs"' in drawn
    assert drawn.count('<th scope="row">') == 7
    assert "<span>25 % failed</span>" in drawn


def test_a_week_without_failures_has_no_legend() -> None:
    assert 'class="scale"' not in failure_week([[HourCount(3, 0)] * 24] * 7)
