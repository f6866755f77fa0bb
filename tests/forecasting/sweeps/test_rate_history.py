"""A rate beside its own history: usual or not, and trends by time and by fullness."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import scipy  # submodules load when used: scipy.stats takes a second

from forecasting.sweeps.rate_history import rate_history

DAY = 86_400.0
TIMES = [number * DAY for number in range(60)]


def noisy(*, spread: float = 0.02, seed: int = 1, slope: float = 0.0) -> list[float]:
    numbers = random.Random(seed)
    return [100.0 * math.exp(slope * number / 30.0) * numbers.gauss(1.0, spread) for number in range(60)]


@pytest.mark.parametrize(
    ("factor", "spread", "state"),
    [(1.0, 0.02, "usual"), (0.8, 0.02, "slower"), (1.3, 0.02, "faster"), (1.0, 0.3, "variable")],
)
def test_the_newest_rate_is_compared_with_the_ones_before(factor: float, spread: float, state: str) -> None:
    rates = noisy(spread=spread)
    rates[-1] = 100.0 * factor
    assert rate_history(TIMES, rates).state == state


def test_a_difference_that_does_not_matter_is_usual() -> None:
    assert rate_history(TIMES, [*noisy(spread=0.001)[:-1], 95.0]).state == "usual"


def test_few_values_say_nothing_about_the_newest() -> None:
    history = rate_history([0.0, DAY], [100.0, 10.0])
    assert (history.n, history.state, history.by_time) == (2, "few", None)
    single = rate_history([0.0], [5.0])
    assert (single.latest, single.median, single.variation) == (5.0, 5.0, 0.0)


def test_a_trend_is_that_of_scipy() -> None:
    rates = noisy(slope=math.log(0.8))
    trend = rate_history(TIMES, rates).by_time
    line = scipy.stats.linregress(np.array(TIMES) / (30 * DAY), np.log(rates))
    reach = scipy.stats.t.ppf(0.95, len(rates) - 2) * line.stderr
    assert trend is not None
    expected = np.expm1([line.slope, line.slope - reach, line.slope + reach])
    assert [trend.change, trend.low, trend.high] == pytest.approx(expected, rel=1e-9)


def test_a_decline_by_month_is_found_with_its_interval() -> None:
    history = rate_history(TIMES, noisy(slope=math.log(0.8)))
    assert history.by_time is not None
    assert history.by_time.low < -0.2 < history.by_time.high
    assert history.by_time.declines
    steady = rate_history(TIMES, noisy()).by_time
    assert steady is not None
    assert not steady.declines


def test_a_decline_as_the_area_fills_is_found_and_unknown_fullness_left_out() -> None:
    fullness = [0.2 + number / 100.0 for number in range(60)]
    rates = [rate * math.exp(-(full - 0.2)) for rate, full in zip(noisy(), fullness, strict=True)]
    trend = rate_history(TIMES, rates, [math.nan, *fullness[1:]]).by_fullness
    assert trend is not None
    assert trend.change == pytest.approx(math.expm1(-0.1), abs=0.01)
    assert rate_history(TIMES, rates, [0.5] * 60).by_fullness is None
    assert rate_history(TIMES, rates, [math.nan] * 60).by_fullness is None
