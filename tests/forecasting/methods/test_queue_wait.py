from __future__ import annotations

import pytest

from forecasting.methods.queue_wait import Method
from forecasting.queues.binomial import QUANTILE, min_history
from forecasting.queues.bounds import QueueBounds
from forecasting.queues.queue_state import QueuedJob

HOUR = 3600.0


def wait_of(place: int) -> float:
    """Return minutes by night and hours by day, in seconds."""
    return 60.0 * (1 + place % 7) if place % 24 < 12 else HOUR * (1 + place % 5)


def learned(count: int) -> Method:
    """Return the method after *count* waits, one each hour."""
    method = Method()
    for place in range(count):
        method.update(HOUR * place, wait_of(place))
    return method


def test_there_is_no_bound_before_its_minimum_history() -> None:
    assert not learned(min_history() - 1).forecast(60 * HOUR).quantiles
    assert learned(min_history()).forecast(60 * HOUR).quantiles[QUANTILE] == 5 * HOUR


def test_the_bound_is_that_of_a_queue_whose_jobs_come_one_after_another() -> None:
    queue = QueueBounds()
    for place in range(200):
        queue.submit(QueuedJob(place, HOUR * place))
        queue.start(place, HOUR * place + wait_of(place))
        queue.end(place, HOUR * place + wait_of(place))
    expected = queue.bound(QueuedJob(200, 200 * HOUR))
    assert learned(200).forecast(200 * HOUR).quantiles == {QUANTILE: expected}


def test_the_bound_learns_that_waits_are_short_by_night() -> None:
    method = learned(24 * 40)
    by_night, by_day = (method.forecast(HOUR * (24 * 40 + hour)).quantiles[QUANTILE] for hour in (6, 18))
    assert by_night < 0.8 * by_day


def test_mean_and_median_are_those_of_the_last_59_waits() -> None:
    method = Method()
    for place in range(100):
        method.update(HOUR * place, float(place))
    forecast = method.forecast(100 * HOUR)
    assert forecast.mean == forecast.median == pytest.approx(70.0)
