from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
import scipy  # submodules load when used: scipy.stats takes a second

from forecasting import state
from forecasting.base import Abstained, InvalidNumber, Source
from forecasting.evaluation.choice import PredictorChoice, choose
from forecasting.learning.loss_comparison import LossComparison
from forecasting.series import Observation

HOUR_SECONDS = 3600.0
GOOD, USELESS = Source("gather", "total.seconds"), Source("circle", "total.seconds")


def hourly(values: Sequence[float], *, early_seconds: float = 0.0) -> list[Observation]:
    starts = [index * HOUR_SECONDS - early_seconds for index in range(len(values))]
    return [Observation(at, at + 300.0, value) for at, value in zip(starts, values, strict=True)]


def a_grid(hours: int = 120) -> tuple[list[Observation], list[tuple[Source, Observation]]]:
    """Return an application and a probe under the same load, and a probe without it."""
    draw = random.Random(2)
    loads = [draw.lognormvariate(0.0, 0.4) for _ in range(hours)]
    application = [300.0 * load * draw.lognormvariate(0.0, 0.05) for load in loads]
    good = hourly([20.0 * load for load in loads], early_seconds=600.0)
    useless = hourly([draw.lognormvariate(3.0, 0.4) for _ in loads], early_seconds=900.0)
    return hourly(application), [
        *((GOOD, observation) for observation in good),
        *((USELESS, observation) for observation in useless),
    ]


def compared(own: Sequence[float], other: Sequence[float]) -> LossComparison:
    comparison = LossComparison()
    for losses in zip(own, other, strict=True):
        comparison.add(*losses)
    return comparison


def test_the_p_value_is_that_of_the_t_test_of_the_differences() -> None:
    """One step ahead, the corrected statistic of Diebold and Mariano equals that of Student."""
    draw = np.random.default_rng(1)
    own, other = draw.exponential(2.0, 50), draw.exponential(1.7, 50)
    reference = scipy.stats.ttest_1samp(own - other, 0.0, alternative="greater").pvalue
    assert compared(own.tolist(), other.tolist()).p_value == pytest.approx(reference)


def test_the_gain_is_the_share_of_the_loss_that_is_saved() -> None:
    assert compared([2.0, 4.0], [1.0, 2.0]).gain == pytest.approx(0.5)
    assert compared([1.0, 2.0], [2.0, 4.0]).gain == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("own", "other", "helps"),
    [([], [], False), ([1.0], [0.0], False), ([1.0] * 9, [1.0] * 9, False), ([1.0] * 9, [0.5] * 9, True)],
)
def test_little_or_no_difference_does_not_help_and_a_constant_one_does(
    own: list[float], other: list[float], helps: bool
) -> None:
    assert compared(own, other).helps is helps


def test_losses_of_any_size_leave_a_probability() -> None:
    assert 0.0 <= compared([1e300, 1.0, 0.0, 1e300], [1.0, 1e300, 1e300, 0.0]).p_value <= 1.0


def test_the_best_candidate_is_chosen_and_a_useless_predictor_is_dropped_and_listed() -> None:
    choice = choose(*a_grid())
    rows = choice.candidates()
    assert rows[0].predictor == GOOD
    assert rows[0].gain > 0.5
    assert rows[0].helps
    assert [row.used for row in rows].count(True) == 1
    assert next(row for row in rows if row.used).predictor == GOOD
    assert choice.dropped() == [USELESS]
    assert {row.method for row in rows if row.predictor == USELESS} == set(choice.among)
    assert not any(row.helps for row in rows if row.predictor == USELESS)


def test_the_forecast_is_that_of_the_chosen_candidate_or_of_the_own_history() -> None:
    observations, of_predictors = a_grid()
    assert (
        choose(observations, of_predictors)
        .forecast(120 * HOUR_SECONDS)
        .method.startswith(("lrp", "tsp", "match"))
    )
    without = [pair for pair in of_predictors if pair[0] == USELESS]
    assert choose(observations, without).forecast(120 * HOUR_SECONDS).method == "blend"


@pytest.mark.parametrize("probability", [0.1, 0.9])
def test_another_quantile_is_chosen_for_by_the_pinball_loss(probability: float) -> None:
    observations, of_predictors = a_grid()
    choice = choose(observations, of_predictors, own="last_value", among=("lrp",), probability=probability)
    best = choice.candidates()[0]
    assert best.predictor == GOOD
    assert best.own_loss < 100.0  # a half of the absolute loss is more
    assert best.n < len(observations) - 2  # a quantile needs a few misses first
    assert best.helps


def test_values_not_known_yet_are_not_scored() -> None:
    observations, of_predictors = a_grid()
    late = [
        (source, Observation(observation.time_seconds, observation.time_seconds + 1e9, observation.value))
        for source, observation in of_predictors
    ]
    assert {row.n for row in choose(observations, late).candidates()} == {0}


def test_a_choice_continues_from_its_state() -> None:
    observations, of_predictors = a_grid(60)
    choice = choose(observations, of_predictors)
    again = state.load(PredictorChoice, state.dump(choice))
    assert again.candidates() == choice.candidates()
    for candidate in (choice, again):
        candidate.update(61 * HOUR_SECONDS, 300.0)
    assert state.dump(again) == state.dump(choice)


def test_unusable_values_are_refused_and_not_learned() -> None:
    choice = choose(*a_grid(60))
    before = state.dump(choice)
    with pytest.raises(InvalidNumber):
        choice.update(1.0, math.nan)
    with pytest.raises(InvalidNumber):
        choice.observe_predictor(GOOD, 1.0, 1.0, math.inf)
    assert state.dump(choice) == before


def test_nothing_is_expected_before_anything_is_known() -> None:
    with pytest.raises(Abstained):
        PredictorChoice().forecast(0.0)


@pytest.mark.parametrize("probability", [0.0, 1.0, math.nan])
def test_an_invalid_probability_is_refused(probability: float) -> None:
    with pytest.raises(InvalidNumber, match="between 0 and 1"):
        PredictorChoice(probability=probability)


def test_own_stages_are_no_candidates() -> None:
    choice = PredictorChoice()
    choice.observe_predictor(Source("", "stage.compute.seconds"), 0.0, 1.0, 5.0)
    assert choice.candidates() == []
