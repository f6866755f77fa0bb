"""Series, forecasts and strategies that both contract suites of forecasters use."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from forecasting.base import ValueForecast
from forecasting.series import Observation

HOUR_SECONDS = 3600.0


def a_noisy_series(length: int, *, seed: int = 7) -> list[float]:
    draw = random.Random(seed)
    return [draw.lognormvariate(3.0, 0.4) for _ in range(length)]


def hourly(values: Sequence[float]) -> list[Observation]:
    """Return runs of a quarter of an hour, each known at its end."""
    starts = [index * HOUR_SECONDS for index in range(len(values))]
    return [Observation(at, at + 900.0, value) for at, value in zip(starts, values, strict=True)]


def every_four_hours(values: Sequence[float]) -> list[Observation]:
    """Return runs of a quarter of an hour: 180 of them take thirty days."""
    starts = [4 * index * HOUR_SECONDS for index in range(len(values))]
    return [Observation(at, at + 900.0, value) for at, value in zip(starts, values, strict=True)]


def overlapping(values: Sequence[float]) -> list[Observation]:
    """Return runs that start every quarter of an hour and take hours, so that about eight are under way."""
    starts = [index * HOUR_SECONDS / 4 for index in range(len(values))]
    return [Observation(at, at + 350.0 * value, value) for at, value in zip(starts, values, strict=True)]


def a_burst(start_seconds: float, values: Sequence[float]) -> list[Observation]:
    """Return runs that start together and take as many seconds as their values."""
    ordered = sorted(values)
    return [Observation(start_seconds, start_seconds + value, value) for value in ordered]


def assert_is_sound(forecast: ValueForecast) -> None:
    lower, upper = (forecast.quantiles[probability] for probability in (0.1, 0.9))
    assert math.isfinite(forecast.mean)
    assert math.isfinite(lower)
    assert math.isfinite(upper)
    assert lower <= upper
    assert forecast.age_seconds >= 0.0


HARD_SERIES: dict[str, Callable[[], list[float]]] = {
    "zeros": lambda: [0.0] * 60,
    "negatives": lambda: [-value for value in a_noisy_series(150)],
    "signs that change": lambda: [(-1.0) ** index * value for index, value in enumerate(a_noisy_series(150))],
    "the largest number once": lambda: [*a_noisy_series(70), 1e300, *a_noisy_series(150)],
    "nothing but the largest numbers": lambda: [1e300, -1e300] * 80,
    "the smallest numbers": lambda: [5e-324, 1e-310] * 80,
    "a level shift up and back": lambda: [
        *a_noisy_series(60),
        *(1e6 + value for value in a_noisy_series(60)),
        *a_noisy_series(60),
    ],
    "ties": lambda: [float(index % 3) for index in range(150)],
    "a straight line": lambda: [float(index) for index in range(150)],
}


any_number = st.one_of(st.floats(), st.floats(0.0, 1e4), st.sampled_from([0.0, 1.0, 1e300, -1e300]))
any_observation = st.builds(Observation, any_number, any_number, any_number)
