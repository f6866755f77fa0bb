"""Outages have a mean distance and a mean length, for each series and for a selection."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from monitor.analysis.outcomes.read import RunOutcomes
from monitor.analysis.outcomes.repair_times import RepairTimes, repair_times, repair_times_by_series
from monitor.models import Run, Series
from monitor.models.run import State
from reporters import report as wire
from tests.monitor.conftest import NOON
from tests.monitor.web.pages import builders

HOUR = timedelta(hours=1)


def between(start: int = 0, end: int = 24, series: str = "") -> RunOutcomes:
    """Return the outcomes between two hours after noon."""
    user = User(is_superuser=True)
    return RunOutcomes(user, NOON + start * HOUR, NOON + end * HOUR, series=series)


def hourly(series: Series, outcomes: str) -> None:
    """Create a run an hour from noon on: ``.`` passed, any other letter failed, a space is no run."""
    slots = [(NOON + number * HOUR, outcome) for number, outcome in enumerate(outcomes) if outcome != " "]
    Run.objects.bulk_create(
        Run(
            id=wire.run_id(series.name, slot),
            series=series,
            slot=slot,
            due_at=slot,
            state=State.PASSED if outcome == "." else State.FAILED,
        )
        for slot, outcome in slots
    )


@pytest.mark.parametrize(
    ("outcomes", "outages", "between_hours", "repairs", "repair_hours"),
    [
        ("", 0, None, 0, None),
        ("....", 0, None, 0, None),
        ("f", 0, None, 0, None),
        ("fff", 0, None, 0, None),  # it never operated
        ("ff.", 0, None, 1, 2),
        ("..f", 1, 2, 0, None),  # it lasts
        (".f.f", 2, 1, 1, 1),
        ("..ff.", 1, 2, 1, 2),
        ("..f....f..", 2, 3.5, 2, 1),  # 2 + 4 + 1 hours of operation
        ("f.f.f.", 2, 1, 3, 1),
        (". f .", 1, 2, 1, 2),  # from slot to slot
        ("....fff.f.ff", 3, 2, 2, 2),  # the last outage lasts: its 2 runs are no repair
    ],
)
def test_repair_times(
    circle: Series,
    outcomes: str,
    outages: int,
    between_hours: float | None,
    repairs: int,
    repair_hours: float | None,
) -> None:
    def hours(count: float | None) -> timedelta | None:
        return None if count is None else count * HOUR

    hourly(circle, outcomes)
    times = repair_times(between())
    assert (times.outages, times.between) == (outages, hours(between_hours))
    assert (times.repairs, times.to_repair) == (repairs, hours(repair_hours))


def test_the_whole_is_the_sum_of_the_series_and_they_do_not_mix(circle: Series) -> None:
    other = builders.series("other", {}, probe="noop")
    hourly(circle, "..f.")
    hourly(other, "f.....")
    assert repair_times_by_series(between(), [other.pk, circle.pk]) == {
        circle.pk: RepairTimes(1, 2 * HOUR, 1, HOUR),
        other.pk: RepairTimes(0, 4 * HOUR, 1, HOUR),
    }
    assert repair_times(between()) == RepairTimes(1, 6 * HOUR, 2, 2 * HOUR)
    assert repair_times(between(series="other")) == RepairTimes(0, 4 * HOUR, 1, HOUR)
    assert repair_times(between(series="none")) == RepairTimes()


def test_an_outage_counts_on_the_day_on_which_it_began_and_its_length_on_the_day_on_which_it_ended(
    circle: Series,
) -> None:
    hourly(circle, ".fffffffffffffffffff..")  # from 13:00 to 08:00 on the next day
    assert repair_times(between(0, 6)) == RepairTimes(1, HOUR, 0, timedelta())
    assert repair_times(between(13, 14)) == RepairTimes(0, HOUR, 1, 19 * HOUR)
