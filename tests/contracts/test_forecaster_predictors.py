"""The contract of forecasting methods with predictors: a total and a stage, and the stage of probes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import methods
from forecasting.base import LARGEST_VALUE, Abstained, InvalidNumber, Source
from forecasting.series import Forecaster, Observation
from tests.by_night import mostly_by_night
from tests.contracts.forecaster_cases import (
    HARD_SERIES,
    HOUR_SECONDS,
    a_noisy_series,
    any_observation,
    assert_is_sound,
    hourly,
)

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


@pytest.mark.parametrize(("name", "probe"), mostly_by_night(USING_PREDICTORS, list(HARD_PROBES), every=6))
def test_a_hard_probe_leaves_a_sound_answer(name: str, probe: str) -> None:
    values = a_noisy_series(60)
    forecaster = with_predictors(name, values, all_predictor_values(values, HARD_PROBES[probe]()))
    for index in range(3, 60, 2):
        forecast = forecaster.forecast(index * HOUR_SECONDS)
        assert_is_sound(forecast)
        assert math.isfinite(forecast.median)
        assert abs(forecast.median) < 1e4  # all values are below 100


@pytest.mark.parametrize(("name", "series"), mostly_by_night(USING_PREDICTORS, list(HARD_SERIES), every=6))
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
@settings(derandomize=True, database=None)
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


@every_method_with_predictors
def test_a_probe_known_a_second_after_the_start_of_a_run_never_moves_its_forecast(name: str) -> None:
    values = a_noisy_series(60)
    starts = [index * HOUR_SECONDS for index in range(60)]

    def medians(probe: Sequence[float], moment: int) -> float:
        probes = [
            (PROBE, Observation(at - 60.0, at + 1.0, number))
            for at, number in zip(starts, probe, strict=True)
        ]
        forecaster = with_predictors(name, values, all_predictor_values(values, probes))
        return forecaster.forecast(starts[moment]).median

    probe = a_noisy_series(60, seed=9)
    assert medians(probe, 50) == medians([*probe[:50], *(9.0 * number for number in probe[50:])], 50)
