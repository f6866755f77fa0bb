from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterable

import numpy as np
import pytest

from forecasting.methods.ets import FIRST_FIT, FITTED_VALUES, Method, Smoother, fitted, state_space


def trained(values: Iterable[float]) -> Method:
    method = Method()
    for index, value in enumerate(values):
        method.update(60.0 * index, value)
    return method


def noise(count: int, *, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(50.0, 5.0) for _ in range(count)]


def walk(count: int, *, drift: float = 0.0, seed: int = 1) -> list[float]:
    draw, values = random.Random(seed), [100.0]
    for _ in range(count - 1):
        values.append(values[-1] + drift + draw.gauss(0.0, 1.0))
    return values


@pytest.mark.parametrize("values", [noise(29), walk(29), walk(29, drift=4.0)], ids=["noise", "walk", "drift"])
def test_between_fits_updates_equal_append_of_statsmodels(values: list[float]) -> None:
    at_the_fit, later = trained(values[:FIRST_FIT]), trained(values)
    smoother, used = at_the_fit._smoother, list(later._recent)
    trend = smoother.damping > 0.0
    parameters = [smoother.gain, smoother.trend_gain, smoother.damping] if trend else [smoother.gain]
    reference = state_space(np.array(used[:FIRST_FIT]), trend=trend).filter(parameters)
    assert smoother.expected() == pytest.approx(float(reference.forecast(1)[0]), rel=1e-9)
    appended = reference.append(np.array(used[FIRST_FIT:]))
    assert later.forecast(29 * 60.0).mean == pytest.approx(float(appended.forecast(1)[0]), rel=1e-9)
    assert later._smoother.expected(5) == pytest.approx(float(appended.forecast(5)[4]), rel=1e-9)


def test_a_fit_tells_noise_from_a_walk() -> None:
    steady, wandering = fitted(np.array(noise(300))), fitted(np.array(walk(300)))
    assert steady is not None
    assert wandering is not None
    assert steady.gain < 0.1
    assert steady.level == pytest.approx(50.0, abs=1.5)
    assert wandering.gain > 0.8
    assert steady.expected(1000.0) == pytest.approx(steady.level, abs=0.5)


def test_a_trend_is_followed_and_damped() -> None:
    values = walk(60, drift=5.0)
    method = trained(values)
    one, ten, thousand = (method.forecast(60.0 * (59 + steps)).mean for steps in (1, 10, 1000))
    assert one > values[-1] + 2.0
    assert one < ten < thousand
    assert ten - one < 9 * (one - values[-1]) + 9.0
    assert thousand < values[-1] + 50 * 6.0


def test_fits_become_rarer_and_see_the_last_values_only() -> None:
    method, fits, smoother = Method(), [], None
    for index, value in enumerate(noise(120)):
        method.update(60.0 * index, value)
        if smoother is not method._smoother and index:
            fits.append(index + 1)
        smoother = method._smoother
    assert fits == [20, 30, 45, 67, 100]
    method._next_fit = FITTED_VALUES * 9
    for index in range(FITTED_VALUES + 50):
        method.update(60.0 * (120 + index), 1.0)
    assert len(method._recent) == FITTED_VALUES


def test_parameters_that_do_not_follow_a_shift_are_fitted_again() -> None:
    method = trained([*noise(200), *(value + 10.0 for value in noise(50, seed=2))])
    assert method._fitted_at > 200
    assert method._next_fit > 300
    assert method.forecast(60.0 * 250).mean == pytest.approx(60.0, abs=3.0)


@pytest.mark.parametrize("value", [0.0, 7.25, -1e300, 5e-324])
def test_constant_values_need_no_fit(value: float) -> None:
    assert fitted(np.full(40, value)) is None


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_values_of_any_size_are_fitted_alike(size: float) -> None:
    values = np.array(noise(60)) / 70.0
    plain, sized = fitted(values), fitted(values * size)
    assert plain is not None
    assert sized is not None
    assert sized.gain == pytest.approx(plain.gain, abs=1e-6)
    assert sized.expected() == pytest.approx(plain.expected() * size, rel=1e-6)


def test_a_fit_that_takes_too_long_is_given_up() -> None:
    assert fitted(np.array(walk(300)), max_seconds=0.0) is None


def test_an_unfitted_smoother_by_hand() -> None:
    smoother = Smoother(level=10.0)
    smoother.learn(20.0)
    assert (smoother.expected(), smoother.expected(7.0)) == (12.0, 12.0)


def test_a_damped_trend_by_hand() -> None:
    smoother = Smoother(gain=0.5, trend_gain=0.1, damping=0.8, level=10.0, trend=2.0)
    assert smoother.expected() == pytest.approx(10.0 + 1.6)
    assert smoother.expected(3.0) == pytest.approx(10.0 + 1.6 + 1.28 + 1.024)
    smoother.learn(13.6)
    assert (smoother.level, smoother.trend) == pytest.approx((12.6, 1.8))


def test_statsmodels_is_not_loaded_before_there_is_something_to_fit() -> None:
    code = (
        "import sys; from forecasting.methods.ets import Method; method = Method()\n"
        f"for index in range({FIRST_FIT - 1}): method.update(index, index % 5)\n"
        "sys.exit('statsmodels' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
