from __future__ import annotations

import math
import random

import pytest

from forecasting import methods, state
from forecasting.base import Source
from forecasting.memo import Memo
from forecasting.series import Forecaster, Observation

HOUR_SECONDS = 3600.0
PROBE = Source("probe", "seconds")


def trained(values: int) -> Forecaster:
    forecaster, draw = Forecaster("auto"), random.Random(3)
    for index in range(values):
        at_seconds, load = index * HOUR_SECONDS, draw.lognormvariate(3.0, 0.4)
        forecaster.observe(Observation(at_seconds - 900.0, at_seconds - 600.0, load), PROBE)
        forecaster.observe(Observation(at_seconds, at_seconds + 60.0, 3.0 * load))
    forecaster.learn_until(values * HOUR_SECONDS - 1000.0)
    return forecaster


def test_only_the_answer_for_the_last_time_is_kept() -> None:
    memo: Memo[str] = Memo()
    assert memo.get(math.nan) is None
    assert memo.keep(7.0, "seven") == "seven"
    assert (memo.get(7.0), memo.get(8.0)) == ("seven", None)
    memo.clear()
    assert memo.get(7.0) is None


def test_a_forecast_does_not_change_the_kept_state() -> None:
    used, unused = trained(60), trained(60)
    used.forecast(60 * HOUR_SECONDS)
    used.part_medians(60 * HOUR_SECONDS)
    assert used.dump() == unused.dump()


def test_a_forecast_before_new_values_does_not_change_the_one_after_them() -> None:
    used, unused = trained(60), trained(60)
    at_seconds = 60 * HOUR_SECONDS
    for forecaster in (used, unused):
        if forecaster is used:
            before = used.forecast(at_seconds)
        forecaster.observe(Observation(at_seconds - 900.0, at_seconds - 600.0, 90.0), PROBE)
        forecast = forecaster.forecast(at_seconds)
        forecaster.observe(Observation(at_seconds - 500.0, at_seconds - 100.0, 300.0))
    assert forecast != before
    assert used.forecast(at_seconds) == unused.forecast(at_seconds) != forecast
    assert used.part_medians(at_seconds) == unused.part_medians(at_seconds)


@pytest.mark.parametrize("name", ["auto", "blend", "seasonal"])
def test_alternating_times_get_their_own_answers(name: str) -> None:
    used, fresh = methods.load(name)(), methods.load(name)()
    draw = random.Random(4)
    for index in range(50):
        at_seconds, value = index * HOUR_SECONDS, draw.lognormvariate(3.0, 0.4)
        for method in (used, fresh):
            method.observe_predictor(PROBE, at_seconds - 900.0, at_seconds - 600.0, value)
            method.update(at_seconds, value)
        times = [(50 + day) * 24 * HOUR_SECONDS for day in (1, 30, 1, 2)]
        for time_seconds in times:
            copy = state.load(type(fresh), state.dump(fresh))
            assert used.forecast(time_seconds) == copy.forecast(time_seconds)
