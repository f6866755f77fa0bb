from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest

from forecasting import state
from forecasting.learning.quantile_regression import QuantileRegression
from forecasting.queues.binomial import min_history
from forecasting.queues.regressed import RegressedBounds, RegressedJob

QUICK, SLOW = np.array([1.0, -1.0]), np.array([1.0, 1.0])  # a level and one signal
QUICK_SECONDS, SLOW_SECONDS = 20.0, 2000.0
DAY_SECONDS = 86_400.0


def taught(jobs: int) -> tuple[RegressedBounds, count[int]]:
    """Return bounds that tell quick from slow jobs and have scored *jobs* jobs, and numbers of later jobs."""
    regression = QuantileRegression.of(1)
    regression.weights[1] = 0.5 * math.log(SLOW_SECONDS / QUICK_SECONDS)
    bounds, numbers = RegressedBounds(regression), count()
    start_bounded(bounds, "first", numbers, jobs)
    return bounds, numbers


def start_bounded(bounds: RegressedBounds, queue: str, numbers: count[int], jobs: int) -> None:
    """Submit and start quick and slow jobs in turn; the bound of the queue itself is the longer wait."""
    for place, number in zip(range(jobs), numbers, strict=False):
        signals, wait_seconds = (SLOW, SLOW_SECONDS) if place % 2 else (QUICK, QUICK_SECONDS)
        bound_seconds = bounds.bound(queue, signals, SLOW_SECONDS, DAY_SECONDS)
        bounds.submit(number, RegressedJob(queue, 0.0, bound_seconds, signals))
        bounds.start(number, wait_seconds)


def open_late_queue(bounds: RegressedBounds, numbers: count[int], wait_factor: float = 1.0) -> None:
    """Start the first jobs of a queue, whose waits are *wait_factor* times those of the other queue's."""
    for place, number in zip(range(min_history()), numbers, strict=False):
        signals, wait_seconds = (SLOW, SLOW_SECONDS) if place % 2 else (QUICK, QUICK_SECONDS)
        bounds.submit_unbounded(number, "late", signals)
        bounds.start(number, wait_factor * wait_seconds)


def quick_bound_of_a_late_queue(scored_before: int) -> float:
    """Return the bound of a quick job, 40 jobs after a queue has its first bound."""
    bounds, numbers = taught(scored_before)
    open_late_queue(bounds, numbers)
    start_bounded(bounds, "late", numbers, 40)
    return bounds.bound("late", QUICK, SLOW_SECONDS, DAY_SECONDS)


def test_the_bounds_of_a_queue_that_opens_late_soon_follow_what_other_queues_have_taught() -> None:
    assert quick_bound_of_a_late_queue(scored_before=2100) < 0.1 * SLOW_SECONDS


def test_a_queue_that_opens_on_a_new_machine_starts_at_its_own_bound() -> None:
    assert quick_bound_of_a_late_queue(scored_before=100) > 0.8 * SLOW_SECONDS


def test_longer_first_waits_raise_the_bounds_of_a_late_queue_by_the_root_of_their_factor() -> None:
    logs = []
    for factor in (1.0, 100.0):
        bounds, numbers = taught(2100)
        open_late_queue(bounds, numbers, factor)
        start_bounded(bounds, "late", numbers, 1)
        assert bounds.opened_late("late")
        assert not bounds.opened_late("first")
        logs.append(math.log1p(bounds.bound("late", QUICK, 0.0, DAY_SECONDS)))
    share = 1.0 / 11.0  # of the regression after one scored job
    assert logs[1] - logs[0] == pytest.approx(share * 0.5 * math.log(100.0), rel=0.05)


def test_jobs_withdrawn_before_their_queue_has_a_bound_are_forgotten() -> None:
    bounds, numbers = taught(2100)
    for number in (next(numbers) for _ in range(2)):
        bounds.submit_unbounded(number, "late", SLOW)
        bounds.withdraw(number)
    assert state.dump(bounds) == state.dump(taught(2100)[0])
