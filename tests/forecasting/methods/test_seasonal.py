from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from forecasting.base import Abstained
from forecasting.methods import decaying
from forecasting.methods.seasonal import Effects, Evidence, Method, Season

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS
MONDAY_SECONDS = 4 * DAY_SECONDS  # 1970-01-05


def trained(
    values_at: Callable[[float], float], *, every_seconds: float, count: int, seed: int = 1
) -> Method:
    """Return a method that learned *values_at* a time, with noise of standard deviation 1."""
    draw, method = random.Random(seed), Method()
    for index in range(count):
        time_seconds = MONDAY_SECONDS + index * every_seconds
        method.update(time_seconds, values_at(time_seconds) + draw.gauss(0.0, 1.0))
    return method


def by_day(time_seconds: float) -> float:
    return 55.0 if 8 <= time_seconds // HOUR_SECONDS % 24 < 18 else 50.0


def at_weekends(time_seconds: float) -> float:
    return 40.0 if (time_seconds - MONDAY_SECONDS) // DAY_SECONDS % 7 >= 5 else 50.0


def flat(_time_seconds: float) -> float:
    return 50.0


def test_busy_hours_are_found() -> None:
    method = trained(by_day, every_seconds=1.5 * HOUR_SECONDS, count=1000)
    next_midnight = MONDAY_SECONDS + 63 * DAY_SECONDS
    night, noon = (method.forecast(next_midnight + hour * HOUR_SECONDS) for hour in (2, 12))
    assert night.median == pytest.approx(50.0, abs=1.0)
    assert noon.median == pytest.approx(55.0, abs=1.0)
    assert noon.mean - night.mean > 3.5


def test_weekends_are_found_in_daily_values() -> None:
    method = trained(at_weekends, every_seconds=DAY_SECONDS, count=7 * 60)
    monday = MONDAY_SECONDS + 7 * 60 * DAY_SECONDS
    assert method.forecast(monday).median == pytest.approx(50.0, abs=1.5)
    assert method.forecast(monday + 5 * DAY_SECONDS).median == pytest.approx(40.0, abs=2.5)


@pytest.mark.parametrize("every_seconds", [HOUR_SECONDS, 5000.0, DAY_SECONDS])
def test_where_there_is_no_season_the_answer_is_exactly_the_level(every_seconds: float) -> None:
    method, level, draw = Method(), decaying.Method(), random.Random(2)
    same = 0
    for index in range(600):
        time_seconds, value = index * every_seconds, draw.lognormvariate(3.0, 0.4)
        if index:
            seasonal, plain = method.forecast(time_seconds), level.forecast(time_seconds)
            same += (seasonal.mean, seasonal.median) == (plain.mean, plain.median)
        method.update(time_seconds, value)
        level.update(time_seconds, value)
    assert same == 599


def test_a_season_that_is_over_is_forgotten() -> None:
    method = trained(by_day, every_seconds=HOUR_SECONDS, count=600)
    draw = random.Random(4)
    for index in range(600, 1800):
        method.update(MONDAY_SECONDS + index * HOUR_SECONDS, 50.0 + draw.gauss(0.0, 1.0))
    midnight = MONDAY_SECONDS + 1800 * HOUR_SECONDS
    night, noon = (method.forecast(midnight + hour * HOUR_SECONDS).median for hour in (2, 12))
    assert noon == pytest.approx(night, abs=0.5)


def test_there_is_an_expert_forecast_for_each_level_and_for_median_and_mean() -> None:
    method = trained(by_day, every_seconds=HOUR_SECONDS, count=200)
    noon = MONDAY_SECONDS + 12 * HOUR_SECONDS + 10 * DAY_SECONDS
    expert_forecasts, forecast = method.expert_forecasts(noon), method.forecast(noon)
    assert len(expert_forecasts) == Method.EXPERT_FORECASTS
    assert (expert_forecasts[-2], expert_forecasts[-1]) == (forecast.median, forecast.mean)
    assert forecast.median in expert_forecasts[:3]
    assert forecast.mean in expert_forecasts[3:6]
    assert forecast.median in expert_forecasts[6:10]
    assert len(set(expert_forecasts[6:10])) > 1


def test_there_is_no_expert_forecast_before_the_first_value() -> None:
    with pytest.raises(Abstained):
        Method().expert_forecasts(0.0)


def test_by_hand_an_effect_is_shrunk_by_the_variance_of_chance() -> None:
    effects = Effects.of(7, 0.0)
    assert effects.at(3, 2.0) == 0.0
    effects.learn(3, 4.0)
    assert effects.at(3, 2.0) == pytest.approx(4.0 / (1.0 + 1.5 * 0.25))
    effects.learn(3, 4.0)
    assert effects.at(3, 2.0) == pytest.approx(4.0 / (1.0 + 1.5 * 0.25 / 1.95))
    assert effects.at(2, 2.0) == 0.0


def test_by_hand_neighbours_count_by_half_and_the_last_one_is_next_to_the_first() -> None:
    effects = Effects.of(24, 0.5)
    effects.learn(23, 4.0)
    assert effects.at(0, 2.0) == effects.at(22, 2.0) == pytest.approx(4.0 / (1.0 + 1.5 * 0.25 / 0.5))
    assert effects.at(1, 2.0) == 0.0


@pytest.mark.parametrize("deviation", [5e-324, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("usual_size", [0.0, 5e-324, 1.0, 1e300])
def test_effects_of_any_size_are_finite(deviation: float, usual_size: float) -> None:
    effects = Effects.of(24, 0.5)
    for _ in range(3):
        effects.learn(7, deviation)
        assert 0.0 <= effects.at(7, usual_size) <= deviation
        assert 0.0 <= effects.at(8, usual_size) <= deviation


def test_evidence_is_counted_in_standard_errors() -> None:
    evidence = Evidence()
    assert evidence.strength == 0.0
    for _ in range(9):
        evidence.add(2.0)
    assert evidence.strength == pytest.approx(3.0, rel=0.03)  # nine equal gains: 18 / sqrt(36)
    for _ in range(9):
        evidence.add(-2.0)
    assert abs(evidence.strength) < 0.2


def test_hours_and_weekdays_are_those_of_utc_before_and_after_1970() -> None:
    season = Season()
    for hours, deviation in ((-1, 3.0), (0, 7.0)):  # Wednesday 23 h, Thursday 0 h
        season.learn(hours * HOUR_SECONDS, deviation)
    assert [index for index, total in enumerate(season.hours.sums) if total] == [0, 23]
    assert [index for index, total in enumerate(season.weekdays.sums) if total] == [2, 3]


def test_one_outlier_proves_no_season() -> None:
    method, level = Method(), decaying.Method()
    for index in range(10 * 24):
        value = 1e300 if index == 24 * 5 + 3 else 50.0 + index % 7
        method.update(index * HOUR_SECONDS, value)
        level.update(index * HOUR_SECONDS, value)
    same_hour_next_day = 10 * DAY_SECONDS + 3 * HOUR_SECONDS
    assert method.forecast(same_hour_next_day).median == level.forecast(same_hour_next_day).median


def test_a_day_is_found_although_a_fast_level_could_follow_it() -> None:
    draw, method = random.Random(3), Method()
    missed, missed_by_last, last = 0.0, 0.0, 50.0
    for index in range(40 * 24):
        value = 50.0 + 5.0 * math.sin(2.0 * math.pi * index / 24.0) + draw.gauss(0.0, 1.0)
        if index >= 20 * 24:
            missed += abs(value - method.forecast(index * HOUR_SECONDS).median)
            missed_by_last += abs(value - last)
        method.update(index * HOUR_SECONDS, value)
        last = value
    assert missed < 0.7 * missed_by_last  # noise alone is 0.8 of a value of 1.35
