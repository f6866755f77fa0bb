"""Correlation coefficients, their confidence intervals, and the reasons for having none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy  # submodules load when used: scipy.stats takes a second
from hypothesis import assume, given
from hypothesis import strategies as st

from monitor.depot.samples.correlation import LEAST_PAIRS, correlation

values = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e6, 1e6))
columns = st.lists(st.tuples(values, values), min_size=LEAST_PAIRS, max_size=30).map(
    lambda pairs: np.array(pairs).T
)


@given(columns, st.sampled_from([0.8, 0.95]))
def test_coefficients_equal_those_of_scipy(pair: np.ndarray, level: float) -> None:
    assume(all(column.std() > 1e-3 * abs(column).max() for column in pair))
    result = correlation(*pair, level=level)
    expected = scipy.stats.pearsonr(*pair)
    assert result.pearson is not None
    assert result.spearman is not None
    assert result.pearson.value == pytest.approx(expected.statistic, abs=1e-9)
    assert result.spearman.value == pytest.approx(scipy.stats.spearmanr(*pair).statistic, abs=1e-9)
    assert -1 <= result.spearman.lower <= result.spearman.value <= result.spearman.upper <= 1
    assume(abs(result.pearson.value) < 0.999999)
    assert result.pearson.p == pytest.approx(expected.pvalue, abs=1e-9)
    interval = expected.confidence_interval(level)
    assert (result.pearson.lower, result.pearson.upper) == pytest.approx(tuple(interval), abs=1e-9)


def test_spearman_detects_a_nonlinear_monotonic_relation() -> None:
    x = np.arange(1.0, 30.0)
    result = correlation(x, np.exp(x))
    assert result.n == 29
    assert result.pearson is not None
    assert result.spearman is not None
    assert result.spearman.value == pytest.approx(1.0)
    assert result.pearson.value < 0.6


def test_the_interval_of_spearman_has_its_nominal_coverage() -> None:
    """A thousand draws of 40 pairs from a bivariate normal distribution with correlation 0.6."""
    rng = np.random.default_rng(7)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)
    drawn = (correlation(*rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 40).T) for _ in range(1000))
    covered = sum(
        result.spearman.lower <= truth <= result.spearman.upper for result in drawn if result.spearman
    )
    assert 920 <= covered <= 980


def test_huge_numbers_are_correlated_without_overflow() -> None:
    x = np.array([1.0, 2.0, 3.0, 5.0])
    huge, small = correlation(x * 1e300, x[::-1] * 1e-300).pearson, correlation(x, x[::-1]).pearson
    assert huge is not None
    assert small is not None
    assert vars(huge) == pytest.approx(vars(small), rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ([], [], "too_few"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "too_few"),
        ([1.0, 2.0, 3.0, 4.0], [7.0, 7.0, 7.0, 7.0], "constant"),
        ([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0], "constant"),
        ([0.1 + 0.2, 0.3, 0.3, 0.3], [1.0, 2.0, 3.0, 4.0], "constant"),
    ],
)
def test_an_undefined_correlation_has_a_reason(first: list[float], second: list[float], why: str) -> None:
    result = correlation(np.array(first), np.array(second))
    assert (result.pearson, result.spearman, result.why) == (None, None, why)
    assert result.n == len(first)
