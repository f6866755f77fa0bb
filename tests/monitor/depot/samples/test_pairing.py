"""An application's values meet what the probe had said by then: never what it said later."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.db.timestamps import micros
from monitor.depot.samples import write
from monitor.depot.samples.pairing import TooManyValues, nearest_known, paired
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric

MINUTE = timedelta(minutes=1)
APPLICATION, PROBE = Metric(pk=1), Metric(pk=2)

seldom_late = st.one_of(st.integers(-2, 3), st.integers(0, 60))
probe_runs = st.dictionaries(st.integers(0, 50), seldom_late).map(lambda runs: sorted(runs.items()))


def naive(times: list[int], known_at: list[int], asked: int) -> int:
    """Look at every value, in order of time."""
    found = -1
    for number, (time, known) in enumerate(zip(times, known_at, strict=True)):
        if time <= asked and known <= asked:
            found = number
    return found


@given(probe_runs, st.lists(st.integers(-5, 120)))
def test_the_nearest_known_is_what_looking_at_every_value_finds(
    runs: list[tuple[int, int]], asked: list[int]
) -> None:
    times = [time for time, _ in runs]
    known_at = [time + late for time, late in runs]
    found = nearest_known(*(np.array(column, dtype=np.int64) for column in (times, known_at, asked)))
    assert found.tolist() == [naive(times, known_at, one) for one in asked]


def measured(metric: Metric, noon: datetime, *runs: tuple[float, float, float], passed: bool = True) -> None:
    """Runs of (minute of the slot, minute when known, value)."""
    write.write(
        [
            SampleRow(metric.pk, noon + slot * MINUTE, noon + known * MINUTE, value, passed)
            for slot, known, value in runs
        ]
    )


@pytest.fixture
def told(db: None, noon: datetime) -> None:
    """A probe every ten minutes, whose report of the second came when the third had been known for long."""
    measured(PROBE, noon, (0, 1, 10.0), (10, 35, 11.0), (20, 21, 12.0), (30, 31, 13.0))


def test_every_value_meets_the_newest_that_was_known(told: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (1, 2, 1.0), (11, 12, 2.0), (21, 22, 3.0), (40, 41, 4.0))
    found = paired(APPLICATION, PROBE)
    assert found.probe_value.tolist() == [10.0, 10.0, 12.0, 13.0]
    assert found.application_value.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert found.probe_age_seconds.tolist() == [60.0, 660.0, 60.0, 600.0]
    assert found.newest_known_at == noon + 41 * MINUTE


def test_a_lag_asks_what_was_known_so_much_earlier(told: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (31, 32, 1.0))
    assert paired(APPLICATION, PROBE).probe_value.tolist() == [13.0]
    assert paired(APPLICATION, PROBE, lag_seconds=0.5).probe_value.tolist() == [12.0]
    assert paired(APPLICATION, PROBE, lag_seconds=900).probe_value.tolist() == [10.0]


def test_what_came_before_any_of_the_probe_is_counted(told: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (0, 1, 1.0), (2, 3, 2.0))
    found = paired(APPLICATION, PROBE)
    assert (len(found), found.unpaired) == (1, 1)


def test_runs_that_did_not_pass_meet_nothing_and_are_met_by_nothing(told: None, noon: datetime) -> None:
    measured(PROBE, noon, (25, 26, 99.0), passed=False)
    measured(APPLICATION, noon, (27, 28, 99.0), passed=False)
    measured(APPLICATION, noon, (28, 29, 1.0))
    assert paired(APPLICATION, PROBE).probe_value.tolist() == [12.0]


def test_a_window_is_of_the_application_alone(told: None, noon: datetime) -> None:
    """What the probe said before the window began is known in it."""
    measured(APPLICATION, noon, (12, 13, 1.0), (22, 23, 2.0), (32, 33, 3.0))
    found = paired(APPLICATION, PROBE, start=noon + 12 * MINUTE, end=noon + 32 * MINUTE)
    assert found.probe_value.tolist() == [10.0, 12.0]


def test_a_window_without_runs_has_no_pairs(told: None, noon: datetime) -> None:
    found = paired(APPLICATION, PROBE, start=noon)
    assert (len(found), found.unpaired, found.newest_known_at) == (0, 0, None)


def test_more_values_than_memory_is_for_are_refused(told: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (15, 16, 1.0), (32, 33, 2.0))
    with pytest.raises(TooManyValues, match="the probe has more than 1 values there"):
        paired(APPLICATION, PROBE, most_read=1, end=noon + 30 * MINUTE)
    with pytest.raises(TooManyValues, match="the application has more than 1 values there"):
        paired(APPLICATION, PROBE, most_read=1)
    assert len(paired(APPLICATION, PROBE, most_read=4)) == 2


def test_the_past_is_seen_without_its_future(told: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (15, 16, 1.0), (36, 37, 2.0))
    found = paired(APPLICATION, PROBE, known_by=noon + 30 * MINUTE)
    assert found.application_value.tolist() == [1.0]


@pytest.mark.parametrize("first", range(0, 60, 7))
def test_wherever_a_window_begins_its_pairs_are_those_of_the_whole(
    db: None, noon: datetime, first: int
) -> None:
    measured(PROBE, noon, *((slot, slot + 1 + (29 * slot) % 31, float(slot)) for slot in range(0, 60, 3)))
    measured(APPLICATION, noon, *((slot, slot + 1, 0.0) for slot in range(60)))
    whole = paired(APPLICATION, PROBE)
    window = paired(APPLICATION, PROBE, start=noon + first * MINUTE)
    inside = whole.application_time >= micros(noon + first * MINUTE)
    assert window.probe_value.tolist() == whole.probe_value[inside].tolist()
