"""The cost of forecasts: to learn a value, to forecast from a kept state, to update ten thousand series.

The unit is a loop of ten thousand additions in the same Python, about 0.3 ms where the targets were set.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from itertools import count

from forecasting import methods
from forecasting.series import Forecaster, Observation
from tests.bench.base import Result, interleaved

HOUR_SECONDS = 3600.0
KNOWN = 300  # values of a series, before anything is measured
TIMES = 400
MEASURE_SECONDS = 3e-4


def measure() -> list[Result]:
    gc.collect()
    return [
        _update("update of all experts and the blend", 0.0, 3e-4),
        _update("the same, twelve runs under way", 12.5 * HOUR_SECONDS, 3.6e-4),
        _answer(),
        _refresh(),
    ]


def _additions() -> float:
    total = 0.0
    for number in range(10_000):
        total += number
    return total


def _result(name: str, work: Callable[[], object], target_seconds: float) -> Result:
    ours, measure_seconds = interleaved(work, _additions, TIMES)
    return Result(
        name,
        ours / measure_seconds,
        target_seconds / MEASURE_SECONDS,
        "lower",
        {"microseconds": ours * 1e6, "ten thousand additions, microseconds": measure_seconds * 1e6},
    )


def _update(name: str, run_seconds: float, target_seconds: float) -> Result:
    """Measure one update of the blend with all its experts, by runs of *run_seconds* that start each hour."""
    blend, steps, draw = methods.load("blend")(), count(), random.Random(1)

    def learn() -> None:
        at_seconds = next(steps) * HOUR_SECONDS
        blend.learn(at_seconds, at_seconds + run_seconds, draw.lognormvariate(3.0, 0.4))

    for _ in range(KNOWN):
        learn()
    return _result(name, learn, target_seconds)


def _answer() -> Result:
    """Measure a forecast with quantiles from a loaded state, each time for another second, as the last answer
    is kept."""
    forecaster, seconds = Forecaster.load(_trained(KNOWN).dump()), count(1)

    def answer() -> None:
        forecaster.forecast(KNOWN * HOUR_SECONDS - next(seconds))

    return _result("forecast from a state", answer, 5e-5)


def _refresh() -> Result:
    """Measure loading a state, learning a value, forecasting the next, and dumping the state."""
    states, steps, draw = [_trained(KNOWN).dump()], count(KNOWN), random.Random(2)

    def refresh() -> None:
        at_seconds = next(steps) * HOUR_SECONDS
        forecaster = Forecaster.load(states[0])
        forecaster.observe(Observation(at_seconds, at_seconds + 60.0, draw.lognormvariate(3.0, 0.4)))
        forecaster.forecast(at_seconds + HOUR_SECONDS)
        states[0] = forecaster.dump()

    return _result("a series kept up to date (6 ms: 10,000 a minute)", refresh, 6e-3)


def _trained(values: int) -> Forecaster:
    forecaster, draw = Forecaster("auto"), random.Random(3)
    for index in range(values):
        at_seconds = index * HOUR_SECONDS
        forecaster.observe(Observation(at_seconds, at_seconds + 60.0, draw.lognormvariate(3.0, 0.4)))
    forecaster.learn_until(values * HOUR_SECONDS)
    return forecaster
