"""The contract of every forecasting method, on any input."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import methods
from forecasting.base import LARGEST_VALUE, Abstained, ForecastMethod, InvalidNumber, Source, ValueForecast
from forecasting.series import Forecaster, Observation, forecast_history
from forecasting.uncertainty.intervals import QUANTILE_LEVELS

HOUR_SECONDS = 3600.0

every_method = pytest.mark.parametrize("name", methods.names())


def a_noisy_series(length: int, *, seed: int = 7) -> list[float]:
    draw = random.Random(seed)
    return [draw.lognormvariate(3.0, 0.4) for _ in range(length)]


def hourly(values: Sequence[float]) -> list[Observation]:
    """Return runs of a quarter of an hour, each known at its end."""
    starts = [index * HOUR_SECONDS for index in range(len(values))]
    return [Observation(at, at + 900.0, value) for at, value in zip(starts, values, strict=True)]


def trained(name: str, values: Sequence[float]) -> ForecastMethod:
    method = methods.load(name)()
    for index, value in enumerate(values):
        method.update(index * HOUR_SECONDS, value)
    return method


def is_timeless(name: str) -> bool:
    """Tell whether the forecast does not depend on the times of values."""
    return not methods.load(name).USES_TIMES


def assert_is_sound(forecast: ValueForecast) -> None:
    lower, upper = (forecast.quantiles[probability] for probability in (0.1, 0.9))
    assert math.isfinite(forecast.mean)
    assert math.isfinite(lower)
    assert math.isfinite(upper)
    assert lower <= upper
    assert forecast.age_seconds >= 0.0


@every_method
def test_a_method_that_knows_nothing_abstains(name: str) -> None:
    with pytest.raises(Abstained) as abstained:
        methods.load(name)().forecast(0.0)
    assert abstained.value.reason == "too_few"


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
    series = a_noisy_series(40)
    method = trained(name, series)
    with pytest.raises(InvalidNumber, match="finite value"):
        method.update(1.0, value)
    assert method.forecast(1e6) == trained(name, series).forecast(1e6)


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


@every_method
@pytest.mark.parametrize("series", HARD_SERIES)
def test_a_hard_series_gets_a_sound_answer_at_every_step(name: str, series: str) -> None:
    forecaster = Forecaster(name)
    answered = 0
    for index, observation in enumerate(hourly(HARD_SERIES[series]())):
        if index >= 3:
            assert_is_sound(forecaster.forecast(observation.time_seconds))
            answered += 1
        forecaster.observe(observation)
    assert answered >= 50


@every_method
@pytest.mark.parametrize("known", [3, 12, 60, 200])
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
    used, unused = trained(name, a_noisy_series(60)), trained(name, a_noisy_series(60))
    for at_seconds in (1e9, 0.0, 5e5):
        used.forecast(at_seconds)
    assert used.forecast(1e6) == unused.forecast(1e6)


@every_method
def test_a_loaded_forecaster_continues_as_if_it_had_not_been_kept(name: str) -> None:
    seen = hourly(a_noisy_series(130))
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
    history = hourly(a_noisy_series(120)) + hourly(a_noisy_series(120, seed=8))  # every time is there twice
    shuffled = random.Random(1).sample(history, len(history))
    late = 999 * HOUR_SECONDS
    assert forecast_history(history, late, method=name) == forecast_history(shuffled, late, method=name)


@every_method
def test_shuffling_the_future_never_moves_a_past_forecast(name: str) -> None:
    history = hourly(a_noisy_series(150))
    now = history[100].known_at_seconds
    future = [seen.value for seen in history if seen.known_at_seconds > now]
    random.Random(2).shuffle(future)
    other = hourly([seen.value for seen in history if seen.known_at_seconds <= now] + future)
    moments = [at * HOUR_SECONDS for at in range(4, 150)]
    before, after = (
        forecasts_with_all_at_hand(name, history, moments),
        forecasts_with_all_at_hand(name, other, moments),
    )
    past = [index for index, at in enumerate(moments) if at <= now]
    assert [before[index] for index in past] == [after[index] for index in past]
    assert before != after  # the shuffle does move what comes later


def forecasts_with_all_at_hand(
    name: str, history: list[Observation], moments: list[float]
) -> list[ValueForecast]:
    """Return forecasts for *moments* by a forecaster that got the future observations, too."""
    forecaster = Forecaster(name)
    for observation in history:
        forecaster.observe(observation)
    return [forecaster.forecast(at) for at in moments]


any_number = st.one_of(st.floats(), st.floats(0.0, 1e4), st.sampled_from([0.0, 1.0, 1e300, -1e300]))
any_observation = st.builds(Observation, any_number, any_number, any_number)


@every_method
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
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


# Methods with predictors: the total of an application, its one stage, and the same stage of probes.

USING_PREDICTORS = [name for name in methods.names() if methods.load(name).USES_PREDICTORS]
every_method_with_predictors = pytest.mark.parametrize("name", USING_PREDICTORS)

STAGE = "stage.compute.seconds"
OWN_STAGE = Source("", STAGE)
PROBE, OTHER_PROBE = Source("probe", STAGE), Source("other probe", STAGE)

PredictorObservation = tuple[Source, Observation]


def probe_values(values: Sequence[float], source: Source = PROBE) -> list[PredictorObservation]:
    """Return a probe that ran, and was known, in the half hour before each of ``hourly``."""
    starts = [index * HOUR_SECONDS - 1800.0 for index in range(len(values))]
    return [(source, Observation(at, at + 60.0, value)) for at, value in zip(starts, values, strict=True)]


def all_predictor_values(
    values: Sequence[float], *probes: list[PredictorObservation]
) -> list[PredictorObservation]:
    stages = [(OWN_STAGE, seen) for seen in hourly(values)]
    return [*stages, *(one for probe in probes for one in probe)]


def with_predictors(
    name: str, values: Sequence[float], of_predictors: list[PredictorObservation]
) -> Forecaster:
    forecaster = Forecaster(name)
    for source, observation in of_predictors:
        forecaster.observe(observation, source)
    for observation in hourly(values):
        forecaster.observe(observation)
    return forecaster


@every_method_with_predictors
def test_an_application_that_follows_a_probe_is_forecast_from_the_probe(name: str) -> None:
    probe = [*a_noisy_series(60), 40.0]
    values = [10.0 * value for value in probe[:-1]]
    medians = [
        with_predictors(name, values, all_predictor_values(values, probe_values([*probe[:-1], newest])))
        .forecast(60 * HOUR_SECONDS)
        .median
        for newest in (15.0, 30.0)
    ]
    assert medians[1] > 1.3 * medians[0]


@every_method_with_predictors
def test_shuffling_the_future_of_an_application_and_its_probes_never_moves_a_past_forecast(name: str) -> None:
    probe = a_noisy_series(70)
    values = [10.0 * value for value in a_noisy_series(70, seed=9)]
    other_probe, other_values = (
        numbers[:51] + random.Random(5).sample(numbers[51:], 19) for numbers in (probe, values)
    )
    moments = [at * HOUR_SECONDS for at in range(4, 70)]
    before, after = (
        [forecaster.forecast(at) for at in moments]
        for forecaster in (
            with_predictors(name, values, all_predictor_values(values, probe_values(probe))),
            with_predictors(
                name, other_values, all_predictor_values(other_values, probe_values(other_probe))
            ),
        )
    )
    past = [index for index, at in enumerate(moments) if at <= 50 * HOUR_SECONDS]
    assert [before[index] for index in past] == [after[index] for index in past]
    assert before != after


@every_method_with_predictors
def test_a_probe_value_known_after_the_start_of_a_run_is_not_used_for_its_forecast(name: str) -> None:
    values = a_noisy_series(60)
    start = 59.5 * HOUR_SECONDS
    forecasts = []
    for later in (1e-3, 1e3):
        method = methods.load(name)()
        for index, value in enumerate(values):
            at = index * HOUR_SECONDS
            method.observe_predictor(PROBE, at - 600.0, at - 300.0, value)
            method.observe_predictor(OWN_STAGE, at, at + 900.0, 3.0 * value)
            method.update(at, 3.0 * value)
        method.observe_predictor(PROBE, start - 600.0, start + 1.0, later)
        forecasts.append(method.forecast(start))
    assert forecasts[0] == forecasts[1]


HARD_PROBES: dict[str, Callable[[], list[PredictorObservation]]] = {
    "a probe that stopped long ago": lambda: probe_values(a_noisy_series(20, seed=4)),
    "a probe that has just begun": lambda: probe_values(a_noisy_series(60, seed=4))[45:],
    "a constant probe": lambda: probe_values([3.0] * 60),
    "a probe of zeros": lambda: probe_values([0.0] * 60),
    "a probe that turns negative": lambda: probe_values(
        [(-1.0) ** (index // 20) * v for index, v in enumerate(a_noisy_series(60, seed=4))]
    ),
    "a probe of the largest numbers": lambda: probe_values([1e300, -1e300] * 30),
    "the largest number once": lambda: probe_values([*a_noisy_series(30), 1e300, *a_noisy_series(29)]),
    "a probe of the smallest numbers": lambda: probe_values([5e-324, 1e-310] * 30),
    "every value twice": lambda: probe_values(a_noisy_series(60, seed=4)) * 2,
    "not a number in between": lambda: [
        *probe_values(a_noisy_series(60, seed=4)),
        *probe_values([math.nan, math.inf, -math.inf] * 20),
    ],
    "the same probe under two names": lambda: [
        *probe_values(a_noisy_series(60, seed=4)),
        *probe_values(a_noisy_series(60, seed=4), OTHER_PROBE),
    ],
    "twenty probes": lambda: [
        one
        for number in range(20)
        for one in probe_values(a_noisy_series(60, seed=number), Source(f"probe {number}", STAGE))
    ],
    "a clock that jumps": lambda: [
        (PROBE, Observation(1e9 * (index % 3), index * HOUR_SECONDS, value))
        for index, value in enumerate(a_noisy_series(60, seed=4))
    ],
}


@every_method_with_predictors
@pytest.mark.parametrize("probe", HARD_PROBES)
def test_a_hard_probe_leaves_a_sound_answer(name: str, probe: str) -> None:
    values = a_noisy_series(60)
    forecaster = with_predictors(name, values, all_predictor_values(values, HARD_PROBES[probe]()))
    for index in range(3, 60, 2):
        forecast = forecaster.forecast(index * HOUR_SECONDS)
        assert_is_sound(forecast)
        assert math.isfinite(forecast.median)
        assert abs(forecast.median) < 1e4  # all values are below 100


@every_method_with_predictors
@pytest.mark.parametrize("series", HARD_SERIES)
def test_a_hard_series_with_a_probe_gets_a_sound_answer(name: str, series: str) -> None:
    values = HARD_SERIES[series]()
    probe = probe_values(a_noisy_series(len(values), seed=4))
    forecaster = with_predictors(name, values, all_predictor_values(values, probe))
    for index in range(3, len(values), 4):
        assert_is_sound(forecaster.forecast(index * HOUR_SECONDS))


@every_method_with_predictors
@pytest.mark.parametrize(
    "numbers", [(0.0, 0.0, math.nan), (0.0, 0.0, 2.0 * LARGEST_VALUE), (math.nan, 0.0, 1.0)]
)
def test_unusable_predictor_values_are_refused(name: str, numbers: tuple[float, float, float]) -> None:
    method = methods.load(name)()
    with pytest.raises(InvalidNumber):
        method.observe_predictor(PROBE, *numbers)


@every_method_with_predictors
def test_a_loaded_forecaster_still_has_its_predictor_values(name: str) -> None:
    values, probe = a_noisy_series(60), probe_values(a_noisy_series(61, seed=4))
    steady = kept = with_predictors(name, values, all_predictor_values(values, probe))
    for at in range(4, 60, 7):
        steady.learn_until(at * HOUR_SECONDS)
        kept = Forecaster.load(steady.dump())
    late = 60 * HOUR_SECONDS
    assert kept.forecast(late) == steady.forecast(late)
    assert kept.dump() == steady.dump()


@every_method_with_predictors
def test_the_order_in_which_probes_and_runs_arrive_changes_nothing(name: str) -> None:
    values = a_noisy_series(80)
    of_predictors = all_predictor_values(
        values,
        probe_values(a_noisy_series(81, seed=4)),
        probe_values(a_noisy_series(81, seed=5), OTHER_PROBE),
    )
    shuffled = random.Random(1).sample(of_predictors, len(of_predictors))
    late = 80 * HOUR_SECONDS
    assert with_predictors(name, values, of_predictors).forecast(late) == with_predictors(
        name, values, shuffled
    ).forecast(late)


any_source = st.sampled_from([PROBE, OTHER_PROBE, OWN_STAGE, Source("probe", "total.seconds")])


@every_method_with_predictors
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(
    history=st.lists(any_observation, max_size=40),
    of_predictors=st.lists(st.tuples(any_source, any_observation), max_size=60),
    at_seconds=st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_predictor_values_give_a_sound_forecast_or_an_abstention(
    name: str, history: list[Observation], of_predictors: list[PredictorObservation], at_seconds: float
) -> None:
    forecaster = Forecaster(name)
    for observation in history:
        forecaster.observe(observation)
    for source, observation in of_predictors:
        forecaster.observe(observation, source)
    try:
        forecast = forecaster.forecast(at_seconds)
    except Abstained:
        return
    assert math.isfinite(forecast.median)
    assert_is_sound(forecast)
