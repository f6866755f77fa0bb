from __future__ import annotations

import random

import numpy as np
import pytest

from forecasting.learning.fading import FadingValues
from forecasting.series import Forecaster, Observation
from forecasting.uncertainty.fading_quantiles import fading_quantiles
from forecasting.uncertainty.intervals import QUANTILE_LEVELS

DAY_SECONDS = 86_400.0
MEDIAN = QUANTILE_LEVELS.index(0.5)


def test_without_values_there_are_no_quantiles() -> None:
    assert fading_quantiles(FadingValues(), 0.0) is None


def test_quantiles_rise_and_stay_within_the_values() -> None:
    recent, draw = FadingValues(), random.Random(1)
    values = [draw.lognormvariate(5.0, 2.0) for _ in range(60)]
    for index, value in enumerate(values):
        recent.add(60.0 * index, value)
    quantiles = fading_quantiles(recent, 4000.0)
    assert quantiles is not None
    assert (np.diff(quantiles) >= 0.0).all()
    assert (min(values), max(values)) == (quantiles[0], quantiles[-1])


def test_the_quantiles_of_one_value_are_this_value() -> None:
    recent = FadingValues()
    recent.add(7.0, 7.0)
    assert fading_quantiles(recent, 10.0) == pytest.approx(np.full(len(QUANTILE_LEVELS), 7.0))


def test_a_new_burst_moves_the_quantiles_until_a_pause() -> None:
    recent = FadingValues()
    for index in range(40):
        recent.add(index * DAY_SECONDS + 600.0, 600.0 + index)
    for index in range(8):
        recent.add(40 * DAY_SECONDS + 60.0, 60.0 + index)
    soon, late = (fading_quantiles(recent, day * DAY_SECONDS) for day in (40.001, 90.0))
    assert soon is not None
    assert late is not None
    assert soon[MEDIAN] < 100.0 < late[MEDIAN]


def test_the_interval_of_runs_that_overlap_reaches_to_both_modes() -> None:
    draw, forecaster = random.Random(2), Forecaster("auto")
    for index in range(200):
        start, seconds = 600.0 * index, draw.gauss(*draw.choice([(6_000.0, 60.0), (36_000.0, 360.0)]))
        forecaster.observe(Observation(start, start + seconds, seconds))
    quantiles = forecaster.forecast(200 * 600.0, probabilities=(0.05, 0.95)).quantiles
    assert 5_000.0 < quantiles[0.05] < 7_000.0
    assert 34_000.0 < quantiles[0.95] < 46_000.0
