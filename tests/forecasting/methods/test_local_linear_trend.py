from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest

from forecasting.methods.local_linear_trend import DAMPING, GAINS, Method, Trends


class Unbounded(Trends):
    __slots__ = ()
    REACH = 1e9


def trained(values: Iterable[float]) -> Method:
    method = Method()
    for index, value in enumerate(values):
        method.update(60.0 * index, value)
    return method


@pytest.mark.parametrize("index", range(len(GAINS)))
def test_without_outliers_each_smoother_equals_the_state_space_model_of_statsmodels(index: int) -> None:
    from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing  # takes two seconds

    draw, trends = random.Random(5), Unbounded()
    values = [100.0 + 3.0 * step + draw.gauss(0.0, 4.0) for step in range(60)]
    for value in values:
        trends.update(value)
    model = ExponentialSmoothing(
        np.array(values[1:]),
        trend=True,
        damped_trend=True,
        initialization_method="known",
        initial_level=values[0],
        initial_trend=0.0,
    )
    reference = model.filter([*GAINS[index], DAMPING]).forecast(7)
    assert trends.all_expected(1.0)[index] == pytest.approx(float(reference[0]), rel=1e-9)
    assert trends.all_expected(7.0)[index] == pytest.approx(float(reference[6]), rel=1e-9)


def test_a_line_continues_from_its_state() -> None:
    method = trained(float(step) for step in range(100))
    assert method.forecast(60.0 * 100).mean == pytest.approx(100.0, abs=0.7)  # the last value is off by 1


def test_the_further_ahead_the_further_along_the_trend_but_never_without_end() -> None:
    method = trained(float(step) for step in range(100))
    one, five, endless = (method.forecast(60.0 * (99 + steps)).mean for steps in (1, 5, 1e9))
    assert one + 2.5 < five < one + 4.0
    assert endless < one + 20.0  # 0.95 + 0.95^2 + ...


def test_where_nothing_rises_nothing_is_expected_to() -> None:
    draw = random.Random(8)
    method = trained(draw.gauss(50.0, 1.0) for _ in range(300))
    assert method.forecast(60.0 * 300).mean == pytest.approx(50.0, abs=1.0)
    assert method.forecast(60.0 * 3000).mean == pytest.approx(50.0, abs=2.0)


def test_an_outlier_starts_no_trend() -> None:
    draw = random.Random(8)
    calm = [draw.gauss(50.0, 1.0) for _ in range(100)]
    assert trained([*calm, 1e9]).forecast(60.0 * 120).mean == pytest.approx(
        trained(calm).forecast(60.0 * 120).mean, abs=4.0
    )


def test_by_hand() -> None:
    # All three expected 10 and got 14; of equals the first speaks: level 10 + 0.1 * 4, trend 0.005 * 4.
    forecast = trained([10.0, 14.0]).forecast(120.0)
    assert forecast.mean == forecast.median == pytest.approx(10.4 + 0.95 * 0.02)
