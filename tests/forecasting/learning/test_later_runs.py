from __future__ import annotations

import random

from forecasting.learning.later_runs import ENOUGH, LaterRuns


def of_starts(*starts: float) -> LaterRuns:
    runs = LaterRuns()
    for start in starts:
        runs.add(start)
    return runs


def test_a_value_is_superseded_once_enough_runs_have_started_after_its_run_ended() -> None:
    later = [10.0 + number for number in range(ENOUGH)]
    assert not of_starts(*later[1:]).supersede(9.0)
    assert of_starts(*later).supersede(9.0)
    assert not of_starts(*later).supersede(10.0)


def test_runs_that_started_before_do_not_count() -> None:
    assert not of_starts(*(float(number) for number in range(100))).supersede(99.0 - ENOUGH / 2)


def test_the_newest_starts_count_in_whatever_order_the_runs_become_known() -> None:
    starts = [float(number) for number in range(100)]
    assert of_starts(*random.Random(1).sample(starts, 100)).supersede(79.5)
    assert not of_starts(*random.Random(1).sample(starts, 100)).supersede(80.5)


def test_a_run_that_becomes_known_at_its_end_is_never_superseded() -> None:
    runs, draw = LaterRuns(), random.Random(2)
    ends = sorted((start + draw.lognormvariate(3.0, 2.0), start) for start in range(500))
    for end, start in ends:
        assert not runs.supersede(end)
        runs.add(start)
