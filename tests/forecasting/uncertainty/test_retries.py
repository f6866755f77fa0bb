from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from forecasting.base import InvalidNumber
from forecasting.uncertainty.retries import mean_seconds, quantiles_seconds

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
NORMAL = np.array([-1.644854, -1.281552, -0.674490, 0.0, 0.674490, 1.281552, 1.644854])


def lognormal(medians: object, spread: float) -> NDArray[np.float64]:
    return np.asarray(np.multiply.outer(np.asarray(medians, dtype=np.float64), np.exp(spread * NORMAL)))


@pytest.mark.parametrize(
    ("first", "later", "mean"),
    [
        (1.0, 0.0, 100.0),
        (0.0, 1.0, 100.0 + 30.0),
        (0.5, 0.5, 100.0 + 30.0),
        (0.9, 0.2, 100.0 + 0.1 * 5.0 * 30.0),
        (0.9, 0.0, math.inf),
    ],
)
def test_the_mean_counts_the_failures_that_are_to_be_expected(
    first: float, later: float, mean: float
) -> None:
    assert mean_seconds(first, later, 100.0, 20.0, 10.0) == pytest.approx(mean)


def test_without_failures_the_time_is_that_of_a_success() -> None:
    success = lognormal([100.0, 7.0], 0.4)
    quantiles = quantiles_seconds(
        [0.1, 0.5, 0.9], [1.0, 1.0], [0.5, 0.5], LEVELS, success, 9.0 * success, 60.0
    )
    np.testing.assert_allclose(quantiles, success[:, [1, 3, 5]].T, rtol=0.01)


def test_failures_before_a_success_are_added_with_their_delays() -> None:
    success, failure = np.full((3, 7), 100.0), np.full((3, 7), 20.0)
    quantiles = quantiles_seconds(
        [0.2, 0.6, 0.85], [0.5] * 3, [0.5, 1.0, 0.0], LEVELS, success, failure, 10.0
    )
    assert quantiles.T.tolist() == [[100.0, 130.0, 160.0], [100.0, 130.0, 130.0], [100.0, math.inf, math.inf]]


def simulated(
    first: float, later: float, success: NDArray[np.float64], failure: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Simulate a hundred thousand runs."""
    draw = np.random.default_rng(5)
    count = 100_000
    failures = np.where(draw.random(count) < first, 0, draw.geometric(later, count))
    seconds = np.interp(draw.random(count), LEVELS, success) + 60.0 * failures
    for number in range(failures.max()):
        seconds += np.where(failures > number, np.interp(draw.random(count), LEVELS, failure), 0.0)
    return seconds


@pytest.mark.parametrize(
    ("first", "later", "failure_median", "within"),
    [(0.95, 0.6, 40.0, 0.02), (0.95, 0.6, 2000.0, 0.05), (0.7, 0.5, 0.001, 0.03), (0.4, 0.3, 150.0, 0.05)],
)
def test_quantiles_are_those_of_many_random_histories(
    first: float, later: float, failure_median: float, within: float
) -> None:
    success, failure = lognormal([300.0], 0.3), lognormal([failure_median], 0.6)
    probabilities = [0.25, 0.5, 0.75, 0.9]
    quantiles = quantiles_seconds(probabilities, [first], [later], LEVELS, success, failure, 60.0)[:, 0]
    np.testing.assert_allclose(
        quantiles, np.quantile(simulated(first, later, success[0], failure[0]), probabilities), rtol=within
    )


def test_a_candidate_that_is_nowhere_worse_is_never_ranked_behind() -> None:
    draw = np.random.default_rng(6)
    first, later = draw.uniform(0.3, 0.999, 200), draw.uniform(0.1, 0.99, 200)
    success, failure = (
        lognormal(draw.uniform(1.0, 900.0, 200), 0.5),
        lognormal(draw.uniform(1.0, 900.0, 200), 1.0),
    )

    def with_advantage(*better: float) -> NDArray[np.float64]:
        more_first, more_later, less_success, less_failure = better
        return quantiles_seconds(
            [0.1, 0.5, 0.9, 0.95], first + more_first, later + more_later, LEVELS,
            success - less_success, failure - less_failure, 30.0,
        )  # fmt: skip

    baseline = with_advantage(0.0, 0.0, 0.0, 0.0)
    for better in np.diag([1e-4, 1e-4, 1e-3, 1e-3]):
        assert (with_advantage(*better) <= baseline).all()


def test_a_thousand_candidates_are_as_each_alone() -> None:
    draw = np.random.default_rng(7)
    first, later = draw.uniform(0.1, 1.0, 1000), draw.uniform(0.1, 1.0, 1000)
    success, failure = (
        lognormal(draw.uniform(1.0, 900.0, 1000), 0.5),
        lognormal(draw.uniform(1.0, 900.0, 1000), 1.0),
    )
    together = quantiles_seconds([0.5, 0.9], first, later, LEVELS, success, failure, 30.0)
    assert together.shape == (2, 1000)
    for candidate in (0, 500, 999):
        each = slice(candidate, candidate + 1)
        alone = quantiles_seconds(
            [0.5, 0.9], first[each], later[each], LEVELS, success[each], failure[each], 30.0
        )
        np.testing.assert_allclose(alone[:, 0], together[:, candidate], rtol=1e-12)


@pytest.mark.parametrize("number", [1e-300, 1e-18, 1.0 - 1e-16])
def test_the_most_extreme_chances_have_an_answer(number: float) -> None:
    huge = np.full((1, 7), 1e300)
    quantiles = quantiles_seconds([0.5, 1.0], [number], [number], LEVELS, huge, huge, 1e300)
    assert not np.isnan(quantiles).any()
    assert (quantiles >= 1e300).all()
    assert mean_seconds(number, number, 1e300, 1e300) >= 1e300


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": [1.1]},
        {"later": [math.nan]},
        {"success_quantiles": [[-1.0] * 7]},
        {"failure_quantiles": [[math.inf] * 7]},
        {"delay_seconds": -1.0},
        {"probabilities": [2.0]},
    ],
)
def test_an_invalid_probability_or_time_is_refused(wrong: dict[str, object]) -> None:
    right = {
        "probabilities": [0.5], "first": [0.5], "later": [0.5], "levels": LEVELS,
        "success_quantiles": [[1.0] * 7], "failure_quantiles": [[1.0] * 7],
    }  # fmt: skip
    with pytest.raises(InvalidNumber):
        quantiles_seconds(**{**right, **wrong})  # type: ignore[arg-type]
