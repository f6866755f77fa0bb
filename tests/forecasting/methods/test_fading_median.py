from __future__ import annotations

import random
from collections.abc import Sequence

from forecasting.methods import blend
from forecasting.methods.fading_median import Method
from forecasting.series import Forecaster, Observation

HOUR_SECONDS = 3600.0


def trained(*runs: tuple[float, float, float]) -> Method:
    """Return the method after *runs*: (start, end, value)."""
    method = Method()
    for started_at, known_at, value in runs:
        method.learn(started_at, known_at, value)
    return method


def one_after_another(values: Sequence[float]) -> list[tuple[float, float, float]]:
    return [(index * HOUR_SECONDS, index * HOUR_SECONDS + 60.0, value) for index, value in enumerate(values)]


def test_by_hand_the_median_of_two_values_is_the_newer_one() -> None:
    assert trained(*one_after_another([10.0, 20.0])).forecast(2 * HOUR_SECONDS).median == 20.0


def test_the_middle_one_of_the_fading_median_the_plain_median_and_the_last_value_is_the_forecast() -> None:
    before = [10.0] * 60
    for last, forecast in (10.0, 10.0), (30.0, 30.0), (50.0, 40.0):  # the plain median is 10
        method = trained(*one_after_another([*before, *[40.0] * 40, last]))
        assert method.forecast(101 * HOUR_SECONDS).median == forecast


def test_after_a_pause_the_last_burst_weighs_less() -> None:
    usual = [(day * 86_400.0, day * 86_400.0 + 600.0, 600.0) for day in range(60)]
    burst = [(60 * 86_400.0, 60 * 86_400.0 + 60.0 + index, 60.0 + index) for index in range(6)]
    method = trained(*usual, *burst)
    assert method.forecast(60 * 86_400.0 + 120.0).median < 100.0
    assert method.forecast(90 * 86_400.0).median == 600.0


def test_it_joins_the_blend_with_the_first_run_that_overlaps() -> None:
    blended = blend.Method()
    for started_at, known_at, value in one_after_another([10.0, 11.0, 12.0]):
        blended.learn(started_at, known_at, value)
    assert "fading_median" not in blended.parts()
    blended.learn(2.2 * HOUR_SECONDS, 4 * HOUR_SECONDS, 13.0)
    assert "fading_median" not in blended.parts()
    blended.learn(2.1 * HOUR_SECONDS, 5 * HOUR_SECONDS, 14.0)
    assert blended.parts()["fading_median"].forecast(6 * HOUR_SECONDS).n == 1


def test_it_joins_a_blend_that_began_with_a_prior_and_whose_first_runs_overlap() -> None:
    draw, teacher = random.Random(6), Forecaster("blend")
    for index in range(40):
        start = index * HOUR_SECONDS
        teacher.observe(Observation(start, start + 60.0, draw.lognormvariate(3.0, 0.4)))
    teacher.learn_until(40 * HOUR_SECONDS)
    taught = Forecaster.started("blend", teacher.prior())
    for index in range(8):
        taught.observe(Observation(60.0 * index, HOUR_SECONDS + 60.0 * index, 20.0 + index))
    forecast = taught.forecast(2 * HOUR_SECONDS)
    assert 20.0 <= forecast.median <= 27.0
    assert "fading_median" in taught.method.parts()


def test_a_forecaster_kept_while_runs_begin_to_overlap_continues_alike() -> None:
    draw, observations = random.Random(5), []
    for index in range(80):
        start, seconds = index * HOUR_SECONDS, 60.0 if index < 30 else draw.uniform(24_000.0, 48_000.0)
        observations.append(Observation(start, start + seconds, draw.lognormvariate(3.0, 0.4)))
    there, kept = Forecaster("auto"), Forecaster("auto")
    for observation in observations:
        there.observe(observation)
        kept = Forecaster.load(kept.dump())
        kept.observe(observation)
        kept.learn_until(observation.time_seconds)
    for each in (there, kept):
        each.learn_until(200 * HOUR_SECONDS)
    assert kept.dump() == there.dump()
    assert "fading_median" in kept.method.parts()
