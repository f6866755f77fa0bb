from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from forecasting import state
from forecasting.learning.aggregation import Aggregation


def trained(aggregation: Aggregation, history: Iterable[tuple[Sequence[float], float]]) -> list[float]:
    """Return the blends before each actual value of *history*: pairs of expert forecasts and actual value."""
    answers = []
    for forecasts, value in history:
        answers.append(aggregation.blend(np.array(forecasts)))
        aggregation.update(np.array(forecasts), value)
    return answers


def absolute_loss(answers: Sequence[float], actuals: Sequence[float]) -> float:
    return math.fsum(abs(answer - actual) for answer, actual in zip(answers, actuals, strict=True))


def test_before_anything_is_learned_all_have_the_same_weight() -> None:
    assert Aggregation().blend(np.array([1.0, 2.0, 6.0])) == pytest.approx(3.0)
    assert Aggregation().weights(np.array([1.0, math.nan, 6.0])).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("squared", [False, True])
def test_an_expert_that_is_right_soon_has_all_weight(squared: bool) -> None:
    draw = random.Random(2)
    actuals = [draw.gauss(50.0, 5.0) for _ in range(60)]
    aggregation = Aggregation(squared=squared)
    trained(aggregation, [((actual, 40.0, actual + 9.0), actual) for actual in actuals])
    assert aggregation.weights(np.array([1.0, 1.0, 1.0]))[0] > 0.98


def test_the_blend_of_biased_experts_is_better_than_the_best_of_them() -> None:
    draw = random.Random(3)
    actuals = [draw.gauss(50.0, 5.0) for _ in range(400)]
    experts = [[actual + 4.0 + draw.gauss(0.0, 1.0) for actual in actuals]]
    experts += [[actual - 4.0 + draw.gauss(0.0, 1.0) for actual in actuals]]
    answers = trained(Aggregation(), zip(zip(*experts, strict=True), actuals, strict=True))
    best = min(absolute_loss(expert, actuals) for expert in experts)
    assert absolute_loss(answers, actuals) < 0.5 * best


def test_after_a_change_an_expert_that_was_wrong_for_long_soon_has_weight() -> None:
    draw = random.Random(4)
    levels = [0.0] * 1900 + [20.0] * 100
    actuals = [draw.gauss(level, 1.0) for level in levels]
    answers = trained(Aggregation(), [((0.0, 20.0), actual) for actual in actuals])
    assert absolute_loss(answers[500:1900], actuals[500:1900]) / 1400 < 0.82  # of noise alone .80
    assert absolute_loss(answers[1930:], actuals[1930:]) / 70 < 1.0


@pytest.mark.parametrize(("probability", "share"), [(0.1, 0.1), (0.5, 0.5), (0.9, 0.9)])
def test_with_a_probability_the_quantile_is_found_between_the_experts(
    probability: float, share: float
) -> None:
    draw = random.Random(5)
    actuals = [draw.random() for _ in range(3000)]
    answers = trained(Aggregation(probability=probability), [((0.0, 1.0), actual) for actual in actuals])
    below = sum(actual < answer for actual, answer in zip(actuals, answers, strict=True))
    assert below / 3000 == pytest.approx(share, abs=0.04)


def test_squared_losses_find_the_mean_where_absolute_ones_find_the_median() -> None:
    draw = random.Random(6)
    actuals = [draw.choice([0.0, 0.0, 0.0, 1.0]) + draw.gauss(0.0, 0.05) for _ in range(3000)]
    by_loss = {squared: Aggregation(squared=squared) for squared in (False, True)}
    for aggregation in by_loss.values():
        trained(aggregation, [((-0.5, 1.5), actual) for actual in actuals])
    forecasts = np.array([-0.5, 1.5])
    assert by_loss[True].blend(forecasts) == pytest.approx(0.25, abs=0.1)
    assert by_loss[False].blend(forecasts) == pytest.approx(0.02, abs=0.1)


def test_sleeping_experts_neither_learn_nor_cost_anything() -> None:
    aggregation = Aggregation()
    trained(aggregation, [((1.0, 5.0, math.nan), 1.0)] * 30)
    assert aggregation.blend(np.array([1.0, 5.0, math.nan])) == pytest.approx(1.0)
    assert aggregation.blend(np.array([math.nan, 5.0, 7.0])) == pytest.approx(6.0)  # neither has earned any
    before = state.dump(aggregation)
    aggregation.update(np.array([math.nan] * 3), 8.0)
    assert state.dump(aggregation) == before


def test_the_blend_lies_between_the_experts_for_any_numbers() -> None:
    draw = random.Random(7)
    sizes = (0.0, 5e-324, 1e-300, 1e-3, 1.0, 1e9, 1e300)
    for squared in (False, True):
        aggregation = Aggregation(squared=squared)
        for _ in range(500):
            forecasts = np.array([draw.choice((-1.0, 1.0)) * draw.choice(sizes) for _ in range(5)])
            answer = aggregation.blend(forecasts)
            assert forecasts.min() <= answer <= forecasts.max() or answer == pytest.approx(forecasts.min())
            aggregation.update(forecasts, draw.choice((-1.0, 1.0)) * draw.choice(sizes))


def test_one_outlier_hardly_changes_the_weights() -> None:
    draw = random.Random(8)
    history = [((50.0, 60.0), draw.gauss(50.0, 2.0)) for _ in range(50)]
    clean, hit = Aggregation(), Aggregation()
    trained(clean, history)
    trained(hit, [*history[:40], ((50.0, 60.0), 1e12), *history[41:]])
    forecasts = np.array([50.0, 60.0])
    assert hit.blend(forecasts) == pytest.approx(clean.blend(forecasts), abs=1.0)


def test_weights_do_not_depend_on_the_unit() -> None:
    draw = random.Random(9)
    history = [([draw.gauss(5.0, 1.0) for _ in range(4)], draw.gauss(5.0, 1.0)) for _ in range(100)]
    seconds, milliseconds = Aggregation(), Aggregation()
    trained(seconds, history)
    trained(
        milliseconds,
        [([1e3 * forecast for forecast in forecasts], 1e3 * value) for forecasts, value in history],
    )
    forecasts = np.zeros(4)
    assert milliseconds.weights(forecasts).tolist() == pytest.approx(
        seconds.weights(forecasts).tolist(), rel=1e-6
    )


def test_an_expert_that_is_far_out_does_no_harm_even_with_a_small_weight() -> None:
    draw = random.Random(10)
    actuals = [draw.gauss(10.0, 1.0) for _ in range(80)]
    aggregation = Aggregation()
    trained(aggregation, [((9.0, 10.5, actual + draw.gauss(0.0, 0.5)), actual) for actual in actuals])
    assert aggregation.weights(np.zeros(3))[2] > 0.1
    assert abs(aggregation.blend(np.array([9.0, 10.5, 1e12]))) < 10.0 + 30.0 * 2.0


def test_experts_near_the_newest_value_are_not_cut() -> None:
    aggregation = Aggregation()
    trained(aggregation, [((5.0, 5.0, 5.0), 5.0)] * 40)
    aggregation.update(np.array([5.0, 5.0, 5.0]), 7.0)
    assert aggregation.blend(np.array([5.0, 5.0, 7.0])) == pytest.approx(17.0 / 3.0)
