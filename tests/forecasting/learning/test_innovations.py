from __future__ import annotations

import math
import random
from math import log

import numpy as np
import pytest

from forecasting.learning.innovations import InnovationTracker


def test_an_expected_value_has_no_innovation() -> None:
    tracker = InnovationTracker()
    for _ in range(40):
        innovation = tracker.update(25.0)
    assert innovation == pytest.approx((0.0, 0.0), abs=1e-12)


def test_innovations_of_positive_series_are_ratios() -> None:
    tracker = InnovationTracker()
    for _ in range(40):
        tracker.update(25.0)
    assert tracker.update(50.0) == pytest.approx((log(2.0), log(2.0)))


def test_a_new_level_is_a_short_term_innovation_briefly_and_a_long_term_one_for_long() -> None:
    tracker = InnovationTracker()
    for _ in range(40):
        tracker.update(25.0)
    for _ in range(10):
        innovation = tracker.update(50.0)
    assert abs(innovation.short_term) < 0.25 * log(2.0)
    assert innovation.long_term == pytest.approx(log(2.0))


@pytest.mark.parametrize("odd", [0.0, -3.0])
def test_innovations_of_a_series_that_is_not_positive_are_differences(odd: float) -> None:
    tracker = InnovationTracker()
    for value in [25.0] * 40 + [odd] + [25.0] * 80:
        tracker.update(value)
    assert tracker.update(35.0) == pytest.approx((10.0, 10.0), rel=0.01)
    assert tracker.shifted(25.0, np.array([10.0, math.nan])) == pytest.approx([35.0, math.nan], nan_ok=True)
    assert tracker.distance(35.0, 25.0) == 10.0


def test_a_value_shifted_by_its_distance_to_another_is_that_one() -> None:
    draw = random.Random(6)
    tracker = InnovationTracker()
    for _ in range(20):
        tracker.update(draw.lognormvariate(3.0, 1.0))
    assert tracker.shifted(8.0, np.array([tracker.distance(30.0, 8.0)])) == pytest.approx([30.0])
    assert tracker.shifted(1e300, np.array([1e9])) == [math.inf]


def test_there_is_no_ratio_to_a_number_that_is_not_positive() -> None:
    assert InnovationTracker().distance(5.0, -1.0) == 0.0
