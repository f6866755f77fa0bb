from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import state
from forecasting.base import Abstained, InvalidNumber
from forecasting.learning.issued import IssuedAnswer
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from forecasting.uncertainty.spread import Spread

EIGHTY = (0.1, 0.9)
NINETY = (0.05, 0.95)
ALL = (*NINETY, *EIGHTY)


def trained(values: Sequence[float], points: Sequence[float] | None = None) -> Spread:
    spread = Spread()
    for point, value in zip(points or values_before(values), values, strict=True):
        spread.learn(point, value)
    return spread


def values_before(values: Sequence[float]) -> list[float]:
    return [values[0], *values[:-1]]


def replayed(values: Sequence[float], points: Sequence[float], *, warm_up: int = 40) -> dict[float, float]:
    """Return the share of values at or below each quantile of ``ALL`` (below it, for the lower ones)."""
    spread, undercut = Spread(), dict.fromkeys(ALL, 0)
    for index, (point, value) in enumerate(zip(points, values, strict=True)):
        if index >= warm_up:
            for probability, quantile in spread.around(point, ALL).items():
                undercut[probability] += value < quantile or (probability > 0.5 and value == quantile)
        spread.learn(point, value)
    return {probability: count / (len(values) - warm_up) for probability, count in undercut.items()}


def covered(values: Sequence[float], points: Sequence[float]) -> tuple[float, float]:
    shares = replayed(values, points)
    return shares[0.9] - shares[0.1], shares[0.95] - shares[0.05]


def smoothed(values: Sequence[float], gain: float = 0.2) -> list[float]:
    points = [values[0]]
    for value in values[:-1]:
        points.append(points[-1] + gain * (value - points[-1]))
    return points


def steady(draw: random.Random) -> list[float]:
    return [draw.gauss(100.0, 5.0) for _ in range(1200)]


def skewed(draw: random.Random) -> list[float]:
    return [draw.lognormvariate(3.0, 0.8) for _ in range(1200)]


def wandering(draw: random.Random) -> list[float]:
    level, values = 100.0, []
    for _ in range(1200):
        level += draw.gauss(0.0, 1.0)
        values.append(level + draw.gauss(0.0, 2.0))
    return values


def shifting(draw: random.Random) -> list[float]:
    levels = (100.0, 300.0, 50.0, 120.0, 110.0, 400.0)
    return [draw.gauss(level, level / 20.0) for level in levels for _ in range(200)]


def louder(draw: random.Random) -> list[float]:
    return [draw.gauss(100.0, 1.0 + index / 100.0) for index in range(1200)]


def wild(draw: random.Random) -> list[float]:
    return [100.0 + math.tan(math.pi * (draw.random() - 0.5)) for _ in range(1200)]  # no variance


def whole(draw: random.Random) -> list[float]:
    return [float(round(draw.gauss(50.0, 3.0))) for _ in range(1200)]


@pytest.mark.parametrize("kind", [steady, skewed, wandering, shifting, louder, wild])
def test_the_interval_covers_the_promised_share_of_values(kind: object) -> None:
    assert callable(kind)
    values = kind(random.Random(5))
    eighty, ninety = covered(values, smoothed(values))
    assert eighty == pytest.approx(0.8, abs=0.025)
    assert ninety == pytest.approx(0.9, abs=0.025)


def test_intervals_of_whole_numbers_cover_at_least_the_promised_share() -> None:
    eighty, ninety = covered(values := whole(random.Random(5)), smoothed(values))
    assert 0.78 <= eighty <= 0.9
    assert 0.88 <= ninety <= 0.96


def test_each_end_is_exceeded_by_its_own_share() -> None:
    values = skewed(random.Random(6))
    shares = replayed(values, smoothed(values))
    assert shares == pytest.approx({probability: probability for probability in ALL}, abs=0.02)


def test_a_biased_forecast_is_made_up_for() -> None:
    values = steady(random.Random(7))
    eighty, _ = covered(values, [value - 30.0 for value in smoothed(values)])
    assert eighty >= 0.78


def test_after_a_level_shift_the_interval_follows_within_a_few_values() -> None:
    draw = random.Random(3)
    values = [draw.gauss(level, 1.0) for level in [100.0] * 200 + [300.0] * 30]
    points = smoothed(values, 0.5)
    lower, upper = trained(values, points).around(300.0, EIGHTY).values()
    assert 280.0 < lower < upper < 320.0


def test_the_spread_of_the_values_is_used_where_the_forecast_is_useless() -> None:
    draw = random.Random(4)
    values = [draw.uniform(0.0, 1.0) for _ in range(400)]
    points = [draw.uniform(-50.0, 50.0) for _ in range(400)]
    lower, upper = trained(values, points).around(0.5, EIGHTY).values()
    assert 0.7 < upper - lower < 0.9
    assert covered(values, points)[0] >= 0.8


def test_a_constant_is_certain() -> None:
    assert trained([7.3] * 400).around(7.3, QUANTILE_LEVELS) == dict.fromkeys(QUANTILE_LEVELS, 7.3)


def test_a_value_that_nearly_always_comes_is_inside() -> None:
    draw = random.Random(8)
    values = [195.0 if draw.random() < 0.99 else 194.0 for _ in range(1500)]
    points = [195.0] * len(values)
    spread, inside = Spread(), 0
    for index, (point, value) in enumerate(zip(points, values, strict=True)):
        if index >= 100:
            lower, upper = spread.around(point, NINETY).values()
            inside += lower <= value <= upper
        spread.learn(point, value)
    assert inside >= 0.88 * 1400


@pytest.mark.parametrize("count", [2, 3, 9, 12, 19, 20, 35, 60, 149, 150, 151, 300])
def test_quantiles_never_fall_with_rising_probability(count: int) -> None:
    draw = random.Random(count)
    values = [draw.lognormvariate(0.0, 1.5) for _ in range(count)]
    probabilities = sorted({*QUANTILE_LEVELS, *(draw.uniform(0.001, 0.999) for _ in range(30))})
    quantiles = list(trained(values, smoothed(values)).around(2.0, probabilities).values())
    assert quantiles == sorted(quantiles)
    assert all(map(math.isfinite, quantiles))


def test_the_forecast_is_the_median() -> None:
    assert trained(steady(random.Random(1))).around(98.5, (0.5,)) == {0.5: 98.5}


def test_a_quantile_between_two_levels_is_interpolated() -> None:
    quantiles = trained(steady(random.Random(2))).around(100.0, (0.8, 0.85, 0.9))
    assert quantiles[0.85] == pytest.approx((quantiles[0.8] + quantiles[0.9]) / 2.0)


@pytest.mark.parametrize("count", [0, 1])
def test_one_value_gives_no_quantiles(count: int) -> None:
    with pytest.raises(Abstained) as abstained:
        trained([5.0][:count]).around(5.0, EIGHTY) if count else Spread().around(5.0, EIGHTY)
    assert abstained.value.reason == "too_few"


@pytest.mark.parametrize("count", [5, 50])
@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 90.0, math.nan])
def test_an_invalid_probability_is_refused(count: int, probability: float) -> None:
    with pytest.raises(InvalidNumber, match="probabilit"):
        trained([5.0, 6.0] * count).around(5.0, (probability,))


@pytest.mark.parametrize(("point", "value"), [(math.nan, 1.0), (1.0, math.nan), (1.0, math.inf)])
def test_numbers_that_are_not_finite_are_refused_and_not_learned(point: float, value: float) -> None:
    spread, untouched = trained([5.0, 6.0] * 30), trained([5.0, 6.0] * 30)
    with pytest.raises(InvalidNumber, match="finite"):
        spread.learn(point, value)
    assert state.dump(spread) == state.dump(untouched)


def test_the_same_values_lead_to_the_same_state() -> None:
    values = skewed(random.Random(9))
    assert state.dump(trained(values)) == state.dump(trained(values))


@pytest.mark.parametrize("count", [0, 1, 15, 100, 400])
def test_a_spread_continues_from_its_state(count: int) -> None:
    values = skewed(random.Random(10))
    spread = trained(values[:count]) if count else Spread()
    again = state.load(Spread, state.dump(spread))
    for value in values[count : count + 30]:
        spread.learn(20.0, value)
        again.learn(20.0, value)
    assert again.around(20.0, QUANTILE_LEVELS) == spread.around(20.0, QUANTILE_LEVELS)
    assert state.dump(again) == state.dump(spread)


def test_a_state_is_small() -> None:
    assert len(state.dump(trained(steady(random.Random(1))))) < 8_000


HARD = st.one_of(
    st.floats(-1e300, 1e300),
    st.floats(0.0, 1e4),
    st.sampled_from([0.0, 1.0, 1e300, -1e300, 5e-324, -1e-310]),
)
HUGE = st.sampled_from([1.7e308, -1.7e308])  # that a forecast may be, though no value is


@settings(derandomize=True, database=None)
@given(st.lists(st.tuples(HARD | HUGE, HARD), min_size=2, max_size=60), st.integers(1, 6), HARD | HUGE)
def test_quantiles_are_finite_and_in_order_after_any_values(
    pairs: list[tuple[float, float]], times: int, point: float
) -> None:
    spread = Spread()
    for forecast, value in pairs * times:
        spread.learn(forecast, value)
    quantiles = list(spread.around(point, QUANTILE_LEVELS).values())
    assert all(map(math.isfinite, quantiles))
    assert quantiles == sorted(quantiles)
    assert np.isfinite(spread.losses).all()


def test_after_one_outlier_usual_values_are_within_the_interval() -> None:
    values = steady(random.Random(14))[:200]
    after = trained([*values, 5_000.0], [100.0] * 201).around(100.0, EIGHTY)
    assert after[0.1] < 97.0
    assert after[0.9] > 103.0


def test_two_values_far_away_on_one_side_are_taken_for_the_new_level() -> None:
    values = steady(random.Random(15))[:200]
    spread = trained([*values, 5_000.0, 5_000.0])
    assert spread.quick > 3_500.0


def test_quantiles_that_fade_count_only_where_runs_overlap() -> None:
    draw, fading = random.Random(9), np.linspace(0.0, 400.0, len(QUANTILE_LEVELS))
    values = [draw.gauss(100.0, 5.0) for _ in range(100)]
    alone, overlapping = trained(values), trained(values)
    for value in values:
        overlapping.learn(100.0, value, IssuedAnswer(overlapping.issue(100.0, fading), 8))
    assert alone.around(100.0, NINETY, fading) == alone.around(100.0, NINETY)
    lower_without, upper_without = overlapping.around(100.0, NINETY).values()
    lower, upper = overlapping.around(100.0, NINETY, fading).values()
    assert lower < lower_without < upper_without < upper
    assert upper > 200.0
