"""Values of an application are paired with probe values known before, never later ones."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.db.timestamps import micros
from monitor.depot.samples import write
from monitor.depot.samples.pairing import TooManyValues, nearest_known, paired
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric

MINUTE = timedelta(minutes=1)
APPLICATION, PROBE = Metric(pk=1), Metric(pk=2)

seldom_late = st.one_of(st.integers(-2, 3), st.integers(0, 60))
probe_runs = st.dictionaries(st.integers(0, 50), seldom_late).map(lambda runs: sorted(runs.items()))


def naive(times: list[int], known_at: list[int], moment: int) -> int:
    """Search every value in order of time."""
    nearest = -1
    for number, (time, known_time) in enumerate(zip(times, known_at, strict=True)):
        if time <= moment and known_time <= moment:
            nearest = number
    return nearest


@given(probe_runs, st.lists(st.integers(-5, 120)))
def test_the_nearest_known_value_is_that_of_a_linear_search(
    runs: list[tuple[int, int]], moments: list[int]
) -> None:
    times = [time for time, _ in runs]
    known_at = [time + late for time, late in runs]
    indices = nearest_known(*(np.array(column, dtype=np.int64) for column in (times, known_at, moments)))
    assert indices.tolist() == [naive(times, known_at, time) for time in moments]


def measured(metric: Metric, noon: datetime, *runs: tuple[float, float, float], passed: bool = True) -> None:
    """Store runs given as (minute of the slot, minute when known, value)."""
    write.write(
        [
            SampleRow(metric.pk, noon + slot * MINUTE, noon + known_at * MINUTE, value, passed)
            for slot, known_at, value in runs
        ]
    )


@pytest.fixture
def stored(db: None, noon: datetime) -> None:
    """Store a probe run every ten minutes; the report of the second is late, after that of the third."""
    measured(PROBE, noon, (0, 1, 10.0), (10, 35, 11.0), (20, 21, 12.0), (30, 31, 13.0))


def test_every_value_is_paired_with_the_newest_known_value(stored: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (1, 2, 1.0), (11, 12, 2.0), (21, 22, 3.0), (40, 41, 4.0))
    pairs = paired(APPLICATION, PROBE)
    assert pairs.probe_value.tolist() == [10.0, 10.0, 12.0, 13.0]
    assert pairs.application_value.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert pairs.probe_age_seconds.tolist() == [60.0, 660.0, 60.0, 600.0]
    assert pairs.newest_known_at == noon + 41 * MINUTE


def test_a_lag_uses_values_known_earlier(stored: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (31, 32, 1.0))
    assert paired(APPLICATION, PROBE).probe_value.tolist() == [13.0]
    assert paired(APPLICATION, PROBE, lag_seconds=0.5).probe_value.tolist() == [12.0]
    assert paired(APPLICATION, PROBE, lag_seconds=900).probe_value.tolist() == [10.0]


def test_values_before_any_probe_value_are_counted_as_unpaired(stored: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (0, 1, 1.0), (2, 3, 2.0))
    pairs = paired(APPLICATION, PROBE)
    assert (len(pairs), pairs.unpaired) == (1, 1)


def test_failed_runs_are_not_paired(stored: None, noon: datetime) -> None:
    measured(PROBE, noon, (25, 26, 99.0), passed=False)
    measured(APPLICATION, noon, (27, 28, 99.0), passed=False)
    measured(APPLICATION, noon, (28, 29, 1.0))
    assert paired(APPLICATION, PROBE).probe_value.tolist() == [12.0]


def test_the_time_range_selects_application_values_only(stored: None, noon: datetime) -> None:
    """Probe values from before the range are used."""
    measured(APPLICATION, noon, (12, 13, 1.0), (22, 23, 2.0), (32, 33, 3.0))
    pairs = paired(APPLICATION, PROBE, start=noon + 12 * MINUTE, end=noon + 32 * MINUTE)
    assert pairs.probe_value.tolist() == [10.0, 12.0]


def test_a_range_without_runs_has_no_pairs(stored: None, noon: datetime) -> None:
    pairs = paired(APPLICATION, PROBE, start=noon)
    assert (len(pairs), pairs.unpaired, pairs.newest_known_at) == (0, 0, None)


def test_too_many_values_are_refused(stored: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (15, 16, 1.0), (32, 33, 2.0))
    with pytest.raises(TooManyValues, match="the probe has more than 1 values in the time window"):
        paired(APPLICATION, PROBE, most_read=1, end=noon + 30 * MINUTE)
    with pytest.raises(TooManyValues, match="the application has more than 1 values in the time window"):
        paired(APPLICATION, PROBE, most_read=1)
    assert len(paired(APPLICATION, PROBE, most_read=4)) == 2


def test_known_by_hides_later_values(stored: None, noon: datetime) -> None:
    measured(APPLICATION, noon, (15, 16, 1.0), (36, 37, 2.0))
    pairs = paired(APPLICATION, PROBE, known_by=noon + 30 * MINUTE)
    assert pairs.application_value.tolist() == [1.0]


@pytest.mark.parametrize("first", range(0, 60, 7))
def test_pairs_of_a_range_equal_those_of_the_whole_history(db: None, noon: datetime, first: int) -> None:
    measured(PROBE, noon, *((slot, slot + 1 + (29 * slot) % 31, float(slot)) for slot in range(0, 60, 3)))
    measured(APPLICATION, noon, *((slot, slot + 1, 0.0) for slot in range(60)))
    whole = paired(APPLICATION, PROBE)
    window = paired(APPLICATION, PROBE, start=noon + first * MINUTE)
    inside = whole.application_time >= micros(noon + first * MINUTE)
    assert window.probe_value.tolist() == whole.probe_value[inside].tolist()
