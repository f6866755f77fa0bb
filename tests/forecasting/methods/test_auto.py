from __future__ import annotations

import math
import random

from forecasting import methods
from forecasting.base import Source
from forecasting.evaluation.metrics import mean_absolute_error
from forecasting.methods import auto

HOUR_SECONDS = 3600.0
GOOD, USELESS = Source("gather", "total.seconds"), Source("circle", "total.seconds")


class Grid:
    """Hours with a hidden load, which the good probe and the application share."""

    def __init__(self, hours: int, seed: int = 11) -> None:
        draw = random.Random(seed)
        self.loads = [draw.lognormvariate(0.0, 0.3) for _ in range(hours)]
        self.good = [20.0 * load * draw.lognormvariate(0.0, 0.03) for load in self.loads]
        self.useless = [draw.lognormvariate(3.0, 0.3) for _ in self.loads]
        self.application = [300.0 * load * draw.lognormvariate(0.0, 0.05) for load in self.loads]

    def followed(self, *sources: Source) -> tuple[auto.Method, float]:
        """Return the method after all hours, and the mean error of its medians in the second half."""
        method, forecasts = auto.Method(), []
        for hour, value in enumerate(self.application):
            at = hour * HOUR_SECONDS
            for source in sources:
                shown = self.good if source == GOOD else self.useless
                method.observe_predictor(source, at - 600.0, at - 540.0, shown[hour])
            forecasts.append(method.forecast(at).median if hour else math.nan)
            method.update(at, value)
        half = len(forecasts) // 2
        miss = mean_absolute_error(self.application[half:], forecasts[half:])
        assert miss is not None
        return method, miss


def test_without_predictors_it_is_the_blend() -> None:
    alone, blend = auto.Method(), methods.load("blend")()
    for hour, value in enumerate(Grid(60).application):
        alone.update(hour * HOUR_SECONDS, value)
        blend.update(hour * HOUR_SECONDS, value)
    forecasts, expected = alone.forecast(60 * HOUR_SECONDS), blend.forecast(60 * HOUR_SECONDS)
    assert (forecasts.mean, forecasts.median) == (expected.mean, expected.median)


def test_a_probe_under_the_same_load_halves_the_error() -> None:
    grid = Grid(120)
    _, with_nobody = grid.followed()
    _, with_good = grid.followed(GOOD)
    assert with_good < 0.5 * with_nobody


def test_an_unrelated_probe_does_no_harm_and_is_reported_as_no_help() -> None:
    grid = Grid(160)
    _, with_nobody = grid.followed()
    method, with_useless = grid.followed(USELESS)
    assert with_useless < 1.03 * with_nobody
    (prospect,) = method.predictors()
    assert (prospect.n, prospect.helps, prospect.dropped) == (159, False, True)


def test_the_helpful_probe_is_found_among_others() -> None:
    grid = Grid(120)
    method, miss = grid.followed(USELESS, GOOD)
    _, with_good = grid.followed(GOOD)
    assert miss < 1.15 * with_good
    best, worst = method.predictors()
    assert (best.predictor, best.helps, best.dropped) == (GOOD, True, False)
    assert best.gain > 0.4
    assert best.p_value < 1e-6
    assert (worst.predictor, worst.helps) == (USELESS, False)


def test_own_stages_are_not_used() -> None:
    method = auto.Method()
    method.observe_predictor(Source("", "stage.compute.seconds"), 0.0, 10.0, 5.0)
    assert method.predictors() == []


def test_the_first_of_very_many_predictors_are_used() -> None:
    method = auto.Method()
    for number in range(auto.MAX_PREDICTORS + 5):
        method.observe_predictor(Source(f"probe {number}", "total.seconds"), 0.0, 10.0, 5.0)
    assert len(method.predictors()) == auto.MAX_PREDICTORS


def test_a_probe_that_has_stopped_is_used_no_more() -> None:
    """Its last value was alarming, and would stay the newest one for ever."""
    grid = Grid(120)
    grid.good[-1] *= 3.0
    method, _ = grid.followed(GOOD)
    own = method.parts()["blend"]
    soon, late = (119.5 * HOUR_SECONDS, 200 * HOUR_SECONDS)
    assert method.forecast(soon).median > 1.5 * own.forecast(soon).median
    assert method.forecast(late).median == own.forecast(late).median
