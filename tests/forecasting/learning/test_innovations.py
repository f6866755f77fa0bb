from __future__ import annotations

import math
import random
from math import log

import numpy as np
import pytest

from forecasting.learning.innovations import Course


def test_what_is_as_usual_is_no_news() -> None:
    course = Course()
    for _ in range(40):
        news = course.learn(25.0)
    assert news == pytest.approx((0.0, 0.0), abs=1e-12)


def test_news_are_ratios_of_what_is_always_positive() -> None:
    course = Course()
    for _ in range(40):
        course.learn(25.0)
    assert course.learn(50.0) == pytest.approx((log(2.0), log(2.0)))


def test_a_new_level_is_soon_no_news_of_the_day_but_for_long_news_of_the_month() -> None:
    course = Course()
    for _ in range(40):
        course.learn(25.0)
    for _ in range(10):
        news = course.learn(50.0)
    assert abs(news.of_the_day) < 0.25 * log(2.0)
    assert news.of_the_month == pytest.approx(log(2.0))


@pytest.mark.parametrize("odd", [0.0, -3.0])
def test_a_series_that_is_not_always_positive_is_measured_in_differences(odd: float) -> None:
    course = Course()
    for value in [25.0] * 40 + [odd] + [25.0] * 80:
        course.learn(value)
    assert course.learn(35.0) == pytest.approx((10.0, 10.0), rel=0.01)
    assert course.moved(25.0, np.array([10.0, math.nan])) == pytest.approx([35.0, math.nan], nan_ok=True)
    assert course.distance(35.0, 25.0) == 10.0


def test_moving_by_the_distance_leads_there() -> None:
    draw = random.Random(6)
    course = Course()
    for _ in range(20):
        course.learn(draw.lognormvariate(3.0, 1.0))
    assert course.moved(8.0, np.array([course.distance(30.0, 8.0)])) == pytest.approx([30.0])
    assert course.moved(1e300, np.array([1e9])) == [math.inf]


def test_there_is_no_ratio_to_what_is_not_positive() -> None:
    assert Course().distance(5.0, -1.0) == 0.0
