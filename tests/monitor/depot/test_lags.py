"""Pairs of two metrics at a lag, their regression, and shares of a variance."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.depot.samples.lags import Values, correlations, paired_at, regression, strongest
from monitor.depot.samples.variance import shares

MINUTE = 60_000_000


def values(*pairs: tuple[int, float]) -> Values:
    minutes, numbers = zip(*pairs, strict=True)
    return Values(np.array(minutes, np.int64) * MINUTE, np.array(numbers, np.float64))


@pytest.mark.parametrize(
    ("lag", "pairs"),
    [
        (0, [(1.0, 10.0), (2.0, 10.0), (3.0, 30.0)]),
        (1, [(2.0, 10.0), (3.0, 10.0)]),  # the value of a minute before
        (-1, [(1.0, 10.0), (2.0, 30.0), (3.0, 30.0)]),
    ],
)
def test_each_value_is_paired_with_the_latest_one_at_its_lag(
    lag: int, pairs: list[tuple[float, float]]
) -> None:
    first = values((0, 1.0), (1, 2.0), (2, 3.0))
    second = values((0, 10.0), (2, 30.0))
    _, ours, theirs = paired_at(first, second, lag * MINUTE, tolerance=MINUTE)
    assert list(zip(ours.tolist(), theirs.tolist(), strict=True)) == pairs


def test_the_strongest_lag_is_the_one_by_which_a_metric_follows_the_other() -> None:
    times = np.arange(300, dtype=np.int64) * MINUTE
    cause = np.random.default_rng(3).normal(size=300)
    effect = Values(times, np.roll(cause, 5))  # five minutes later
    best = strongest(correlations(effect, Values(times, cause)))
    assert best is not None
    assert best.seconds == 300
    assert best.correlation.spearman is not None
    assert best.correlation.spearman.value > 0.9


def test_a_regression_finds_a_line_and_none_through_a_constant() -> None:
    x = np.array([1.0, 2.0, 3.0])
    line = regression(x, 2 * x + 1)
    assert line is not None
    assert (line.slope, line.intercept, line.r2) == pytest.approx((2, 1, 1))
    assert regression(np.ones(3), x) is None


def test_shares_of_a_variance_add_up_to_one() -> None:
    draw = np.random.default_rng(1)
    queue, compute = draw.normal(0, 3, 500), draw.normal(0, 1, 500)
    found = shares(queue + compute, {"compute": compute, "queue": queue})
    assert found is not None
    assert list(found.shares) == ["queue", "compute"]
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.shares["queue"] == pytest.approx(0.9, abs=0.1)
    assert shares(np.ones(5), {"queue": np.ones(5)}) is None
