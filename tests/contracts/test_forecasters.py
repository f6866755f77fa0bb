"""The contract of every forecasting method, on any input."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import methods
from forecasting.base import LARGEST_VALUE, Abstained, ForecastMethod, InvalidNumber, ValueForecast
from forecasting.series import Forecaster, Observation, forecast_history
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from tests.by_night import by_night, mostly_by_night
from tests.contracts.forecaster_cases import (
    HARD_SERIES,
    HOUR_SECONDS,
    a_burst,
    a_noisy_series,
    any_observation,
    assert_is_sound,
    every_four_hours,
    hourly,
    overlapping,
)

every_method = pytest.mark.parametrize("name", methods.names())
AROUND_CHANGES = {*range(58, 65), *range(69, 75), *range(118, 125)}  # of level, and the largest number


def trained(name: str, values: Sequence[float]) -> ForecastMethod:
    method = methods.load(name)()
    for index, value in enumerate(values):
        method.update(index * HOUR_SECONDS, value)
    return method


def two_copies(name: str, history: Sequence[Observation]) -> tuple[Forecaster, Forecaster]:
    """Return two forecasters that have learned *history*: trained once, copied by their state."""
    forecaster = Forecaster(name)
    for observation in history:
        forecaster.observe(observation)
    forecaster.learn_until(history[-1].known_at_seconds)
    return forecaster, Forecaster.load(forecaster.dump())


def is_timeless(name: str) -> bool:
    """Tell whether the forecast does not depend on the times of values."""
    return not methods.load(name).USES_TIMES


@every_method
def test_a_method_that_knows_nothing_abstains(name: str) -> None:
    with pytest.raises(Abstained) as abstained:
        methods.load(name)().forecast(0.0)
    assert abstained.value.reason == "too_few"


@pytest.mark.parametrize("name", [name for name in methods.names() if methods.load(name).EXPERT])
def test_an_expert_gives_as_many_forecasts_as_it_declares(name: str) -> None:
    for count in (1, 2, 60):
        expert = trained(name, a_noisy_series(count))
        forecasts = expert.expert_forecasts(count * HOUR_SECONDS)
        assert len(forecasts) == expert.EXPERT_FORECASTS
        assert all(map(math.isfinite, forecasts))
    with pytest.raises(Abstained):
        methods.load(name)().expert_forecasts(0.0)


@every_method
def test_a_single_point_is_its_own_forecast(name: str) -> None:
    forecast = trained(name, [42.0]).forecast(10.0)
    assert (forecast.mean, forecast.n, forecast.age_seconds) == (42.0, 1, 10.0)


@every_method
@pytest.mark.parametrize("known", [0, 1, 2])
def test_fewer_than_three_values_give_no_interval(name: str, known: int) -> None:
    with pytest.raises(Abstained) as abstained:
        forecast_history(hourly([5.0, 6.0][:known]), 9 * HOUR_SECONDS, method=name)
    assert abstained.value.reason == "too_few"


@every_method
def test_three_values_give_an_interval(name: str) -> None:
    forecast = forecast_history(hourly([5.0, 6.0, 5.5]), 9 * HOUR_SECONDS, method=name)
    assert_is_sound(forecast)
    assert forecast.quantiles[0.1] < forecast.quantiles[0.9]


@every_method
def test_a_constant_series_is_forecast_without_uncertainty(name: str) -> None:
    forecast = forecast_history(hourly([7.25] * 130), 200 * HOUR_SECONDS, method=name)
    assert forecast.mean == pytest.approx(7.25, rel=1e-12)
    assert forecast.quantiles == pytest.approx({0.1: 7.25, 0.5: 7.25, 0.9: 7.25}, rel=1e-12)


@every_method
def test_a_forecast_carries_the_name_of_its_method(name: str) -> None:
    assert trained(name, [1.0, 2.0]).forecast(HOUR_SECONDS).method == name


@every_method
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0 * LARGEST_VALUE])
def test_an_unusable_value_is_refused_and_not_learned(name: str, value: float) -> None:
    method = trained(name, a_noisy_series(20))
    before = method.forecast(1e6)
    with pytest.raises(InvalidNumber, match="finite value"):
        method.update(1.0, value)
    assert method.forecast(1e6) == before


@every_method
@pytest.mark.parametrize("time_seconds", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_no_number_is_refused(name: str, time_seconds: float) -> None:
    with pytest.raises(InvalidNumber, match="finite time"):
        methods.load(name)().update(time_seconds, 1.0)


@every_method
def test_unusable_numbers_in_a_history_are_ignored(name: str) -> None:
    clean = hourly(a_noisy_series(40))
    dirty = [
        Observation(seen.time_seconds, seen.known_at_seconds, bad)
        for seen in clean
        for bad in (math.nan, math.inf)
    ]
    late = 99 * HOUR_SECONDS
    assert forecast_history([*clean, *dirty], late, method=name) == forecast_history(clean, late, method=name)


@pytest.mark.parametrize(("name", "series"), mostly_by_night(methods.names(), list(HARD_SERIES), every=6))
def test_a_hard_series_gets_a_sound_answer_all_along(name: str, series: str) -> None:
    forecaster = Forecaster(name)
    answered = 0
    for index, observation in enumerate(hourly(HARD_SERIES[series]())):
        if index >= 3 and (index < 30 or index % 3 == 0 or index in AROUND_CHANGES):
            assert_is_sound(forecaster.forecast(observation.time_seconds))
            answered += 1
        forecaster.observe(observation)
    assert answered >= 35


@every_method
@pytest.mark.parametrize("known", [by_night(3), by_night(12), 60, by_night(200)])
def test_quantiles_never_fall_with_rising_probability(name: str, known: int) -> None:
    history = hourly(a_noisy_series(known))
    forecast = forecast_history(history, known * HOUR_SECONDS, method=name, probabilities=QUANTILE_LEVELS)
    quantiles = list(forecast.quantiles.values())
    assert quantiles == sorted(quantiles)
    assert forecast.quantiles[0.5] == forecast.median


@every_method
def test_after_a_level_shift_the_forecast_moves_to_the_new_level(name: str) -> None:
    draw = random.Random(3)
    series = [level + draw.gauss(0.0, 1.0) for level in [100.0] * 60 + [300.0] * 60]
    forecast = forecast_history(hourly(series), 999 * HOUR_SECONDS, method=name)
    assert forecast.mean == pytest.approx(300.0, abs=5.0)


@every_method
def test_times_that_repeat_or_go_backwards_leave_a_sound_answer(name: str) -> None:
    values = a_noisy_series(80)
    jumping = methods.load(name)()
    for index, value in enumerate(values):
        jumping.update(HOUR_SECONDS * (index // 7 % 5), value)
    forecast = jumping.forecast(-HOUR_SECONDS)
    assert forecast.age_seconds == 0.0
    assert min(values) <= forecast.median <= max(values)
    assert min(values) <= forecast.mean <= max(values)
    if is_timeless(name):
        assert forecast.mean == trained(name, values).forecast(1e6).mean


@every_method
def test_no_number_is_below_the_floor(name: str) -> None:
    series = [0.0, 9.0] * 40
    free = forecast_history(hourly(series), 999 * HOUR_SECONDS, method=name, floor=None)
    floored = forecast_history(hourly(series), 999 * HOUR_SECONDS, method=name, floor=20.0)
    assert free.quantiles[0.1] < 20.0
    assert min(floored.mean, *floored.quantiles.values()) == 20.0


@every_method
def test_a_forecast_changes_no_state(name: str) -> None:
    used, unused = trained(name, a_noisy_series(30)), trained(name, a_noisy_series(30))
    for at_seconds in (1e9, 0.0, 5e5):
        used.forecast(at_seconds)
    assert used.forecast(1e6) == unused.forecast(1e6)


@every_method
def test_a_loaded_forecaster_continues_as_if_it_had_not_been_kept(name: str) -> None:
    seen = hourly(a_noisy_series(92))
    steady, kept = Forecaster(name), Forecaster(name)
    for index, observation in enumerate(seen):
        steady.observe(observation)
        kept.observe(observation)
        if index % 13 == 0:
            kept.learn_until(observation.time_seconds)
            kept = Forecaster.load(kept.dump())
    assert kept.forecast(999 * HOUR_SECONDS) == steady.forecast(999 * HOUR_SECONDS)
    assert kept.dump() == steady.dump()


@every_method
def test_the_same_history_gives_the_same_forecast_in_whatever_order_it_arrives(name: str) -> None:
    history = hourly(a_noisy_series(50)) + hourly(a_noisy_series(50, seed=8))  # every time is there twice
    shuffled = random.Random(1).sample(history, len(history))
    late = 999 * HOUR_SECONDS
    assert forecast_history(history, late, method=name) == forecast_history(shuffled, late, method=name)


@every_method
def test_shuffling_the_future_never_moves_a_past_forecast(name: str) -> None:
    history = hourly(a_noisy_series(110))
    now = history[80].known_at_seconds
    future = [seen.value for seen in history if seen.known_at_seconds > now]
    random.Random(2).shuffle(future)
    other = hourly([seen.value for seen in history if seen.known_at_seconds <= now] + future)
    moments = [at * HOUR_SECONDS for at in range(4, 110)]
    before, after = (
        forecasts_with_all_at_hand(name, history, moments),
        forecasts_with_all_at_hand(name, other, moments),
    )
    past = [index for index, at in enumerate(moments) if at <= now]
    assert [before[index] for index in past] == [after[index] for index in past]
    assert before != after  # the shuffle changes later forecasts


def forecasts_with_all_at_hand(
    name: str, history: list[Observation], moments: list[float]
) -> list[ValueForecast]:
    """Return forecasts for *moments* by a forecaster that got the future observations, too."""
    forecaster = Forecaster(name)
    for observation in history:
        forecaster.observe(observation)
    return [forecaster.forecast(at) for at in moments]


@every_method
@settings(derandomize=True, database=None)
@given(
    history=st.lists(any_observation, max_size=60),
    at_seconds=st.floats(allow_nan=False, allow_infinity=False),
    tail=st.floats(0.001, 0.499),
    floor=st.none() | st.just(0.0),
)
def test_any_history_gets_a_sound_answer_or_an_abstention(
    name: str, history: list[Observation], at_seconds: float, tail: float, floor: float | None
) -> None:
    try:
        forecast = forecast_history(
            history, at_seconds, method=name, probabilities=(tail, 1.0 - tail), floor=floor
        )
    except Abstained:
        assert sum(seen.is_usable and seen.known_at_seconds <= at_seconds for seen in history) < 3
        return
    lower, upper = forecast.quantiles.values()
    assert math.isfinite(forecast.mean)
    assert (floor if floor is not None else -math.inf) <= lower <= upper < math.inf


@every_method
def test_overlapping_runs_get_sound_answers_in_whatever_order_they_arrive(name: str) -> None:
    history = overlapping(a_noisy_series(90))
    forecaster, late = Forecaster(name), Forecaster(name)
    for observation in history:
        forecaster.observe(observation)
    for observation in random.Random(4).sample(history, len(history)):
        late.observe(observation)
    for observation in history[20:]:
        forecast = forecaster.forecast(observation.time_seconds)
        assert_is_sound(forecast)
        assert forecast == late.forecast(observation.time_seconds)
    for each in (forecaster, late):
        each.learn_until(999 * HOUR_SECONDS)
    assert forecaster.dump() == late.dump()


@every_method
def test_of_overlapping_runs_the_future_never_moves_a_past_forecast(name: str) -> None:
    history = overlapping(a_noisy_series(90))
    now = history[60].time_seconds
    other = [
        seen if seen.known_at_seconds <= now else Observation(seen.time_seconds, seen.known_at_seconds, 1.0)
        for seen in history
    ]
    moments = [seen.time_seconds for seen in history[20:61]]
    assert forecasts_with_all_at_hand(name, history, moments) == forecasts_with_all_at_hand(
        name, other, moments
    )


@every_method
def test_a_burst_of_equal_starts_gets_a_sound_answer(name: str) -> None:
    series = hourly(a_noisy_series(60))
    burst = a_burst(60 * HOUR_SECONDS, [500.0 + value for value in a_noisy_series(40)])
    forecaster = Forecaster(name)
    for observation in [*series, *burst]:
        forecaster.observe(observation)
    for observation in burst:
        assert_is_sound(forecaster.forecast(observation.known_at_seconds))


@every_method
def test_an_outcome_thirty_days_late_is_used_and_distorts_no_answer(name: str) -> None:
    values = a_noisy_series(30 * 6)
    steady, late = two_copies(name, every_four_hours(values))
    month = len(values) * 4 * HOUR_SECONDS
    late.observe(Observation(HOUR_SECONDS + 60.0, month, 25.0))
    answer, usual = late.forecast(month + HOUR_SECONDS), steady.forecast(month + HOUR_SECONDS)
    assert_is_sound(answer)
    assert answer.n == usual.n + 1
    assert min(values) <= answer.median <= max(values)
    assert answer.quantiles[0.9] - answer.quantiles[0.1] < 1.5 * (usual.quantiles[0.9] - usual.quantiles[0.1])


@every_method
def test_outcomes_reported_a_month_late_from_another_level_move_no_answer(name: str) -> None:
    values = [100.0 * value for value in a_noisy_series(60)] + a_noisy_series(120)
    month = len(values) * 4 * HOUR_SECONDS
    steady, late = two_copies(name, every_four_hours(values))
    for number in range(10):
        start = (number + 0.5) * HOUR_SECONDS
        late.observe(Observation(start, month + number, 2500.0, start + 2500.0))
    at = month + HOUR_SECONDS
    assert late.forecast(at) == steady.forecast(at)
    assert (late.superseded, late.last_value) == (10, values[-1])


@every_method
def test_overlapping_outcomes_reported_together_are_all_used(name: str) -> None:
    history = overlapping(a_noisy_series(60))
    known_at = max(seen.known_at_seconds for seen in history)
    forecaster = Forecaster(name)
    for seen in random.Random(5).sample(history, 20):
        forecaster.observe(Observation(seen.time_seconds, known_at, seen.value, seen.known_at_seconds))
    assert_is_sound(forecaster.forecast(known_at))
    assert (forecaster.used, forecaster.superseded) == (20, 0)
