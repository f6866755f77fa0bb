"""The figures of a column agree with figures worked by hand, and with scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import scipy  # submodules load when used: scipy.stats takes a second
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.performance.describe import ColumnDescription, NotFinite, describe
from monitor.analysis.performance.sigma_histogram import sigma_histogram
from monitor.analysis.performance.variance_share import variance_shares

COLUMNS = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)


def test_the_figures_of_five_values_are_those_worked_by_hand() -> None:
    # Deviations -3 -2 -1 0 6: squares sum to 50, cubes to 180; m2 = 10, m3 = 36.
    figures = describe(np.array([4.0, 1.0, 3.0, 10.0, 2.0]))
    assert (figures.n, figures.mean, figures.min, figures.max) == (5, 4.0, 1.0, 10.0)
    assert figures.stdev == pytest.approx(math.sqrt(50 / 4))
    assert figures.cv == pytest.approx(math.sqrt(50 / 4) / 4)
    assert figures.quantiles == pytest.approx({0.05: 1.2, 0.25: 2.0, 0.5: 3.0, 0.75: 4.0, 0.95: 8.8})
    assert figures.skewness == pytest.approx(math.sqrt(20) / 3 * 36 / 10**1.5)


def test_no_values_have_no_figures() -> None:
    assert describe(np.array([])) == ColumnDescription(0)


def test_one_value_has_no_spread() -> None:
    figures = describe(np.array([7.0]))
    assert (figures.mean, figures.stdev, figures.cv, figures.skewness) == (7.0, None, None, None)
    assert set(figures.quantiles.values()) == {7.0}


def test_equal_values_have_exactly_no_spread_and_no_skewness() -> None:
    figures = describe(np.full(7, 0.1))
    assert (figures.mean, figures.stdev, figures.cv, figures.skewness) == (0.1, 0.0, 0.0, None)


def test_zeros_have_no_coefficient_of_variation() -> None:
    assert describe(np.zeros(3)).cv is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_position(value: float) -> None:
    for refuse in (describe, sigma_histogram):
        with pytest.raises(NotFinite, match="at position 1"):
            refuse(np.array([1.0, value]))
    with pytest.raises(NotFinite):
        variance_shares({"a": np.array([1.0, value]), "b": np.array([1.0, 2.0])})


@given(COLUMNS)
def test_the_figures_are_those_of_scipy(column: list[float]) -> None:
    values = np.array(column)
    figures = describe(values)
    assert figures.mean == pytest.approx(values.mean())
    if figures.skewness is not None and np.ptp(values) > 1e-3:
        assert figures.stdev == pytest.approx(values.std(ddof=1))
        assert figures.skewness == pytest.approx(scipy.stats.skew(values, bias=False), rel=1e-5, abs=1e-5)


def test_the_share_of_a_stage_is_its_covariance_with_the_total() -> None:
    # Totals 3 5 10 with mean 6: deviations -3 -1 4. a: 1 2 3, -1 0 1. b: 2 3 7, -2 -1 3.
    shares = variance_shares({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([2.0, 3.0, 7.0])})
    assert shares == pytest.approx({"a": 7 / 26, "b": 19 / 26})


def test_a_stage_that_is_short_when_the_total_is_long_has_a_negative_share() -> None:
    shares = variance_shares({"a": np.array([3.0, 2.0, 1.0]), "b": np.array([0.0, 5.0, 10.0])})
    assert shares["a"] < 0
    assert shares["b"] > 1
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "stages",
    [
        {},
        {"a": []},
        {"a": [1.0], "b": [2.0]},
        {"a": [0.0, 0.0]},
        {"a": [0.1] * 7, "b": [0.7] * 7},
        {"a": [1.0, 2.0], "b": [2.0, 1.0]},
    ],
)
def test_a_total_without_variance_has_no_shares(stages: dict[str, Sequence[float]]) -> None:
    assert variance_shares({name: np.array(values) for name, values in stages.items()}) == {}


@given(st.lists(st.tuples(*[st.floats(0, 1e4)] * 3), min_size=2, max_size=30))
def test_shares_add_up_to_one_and_agree_with_numpy(rows: list[tuple[float, float, float]]) -> None:
    columns = np.array(rows).T
    total = columns.sum(axis=0)
    if np.ptp(total) < 1e-3:
        return
    shares = variance_shares(dict(zip("abc", columns, strict=True)))
    assert sum(shares.values()) == pytest.approx(1.0)
    expected = [np.cov(column, total)[0, 1] / total.var(ddof=1) for column in columns]
    assert list(shares.values()) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_values_are_counted_in_classes_of_half_a_standard_deviation() -> None:
    # Mean 0, squares sum to 10 = n - 1: the standard deviation is 1.
    values = np.array([-2.0, -1.0, 0, 0, 0, 0, 0, 0, 0, 1.0, 2.0])
    shown = sigma_histogram(values)
    assert (shown.n, shown.mean, shown.stdev, shown.skewness) == (11, 0.0, 1.0, 0.0)
    counts = {each.lower: each.count for each in shown.classes}
    assert counts == {-2.0: 1, -1.5: 0, -1.0: 1, -0.5: 0, 0.0: 7, 0.5: 0, 1.0: 1, 1.5: 0, 2.0: 1}


def test_values_beyond_four_standard_deviations_are_in_an_open_class() -> None:
    shown = sigma_histogram(np.array([0.0] * 99 + [1.0]))
    assert (shown.classes[-1].lower, shown.classes[-1].upper, shown.classes[-1].count) == (4.0, None, 1)
    assert shown.classes[0].count == 99


@given(COLUMNS)
def test_every_value_is_in_its_class(column: list[float]) -> None:
    values = np.array(column)
    shown = sigma_histogram(values)
    if not shown.stdev:
        assert not shown.classes
        return
    assert shown.mean is not None
    sigmas = (values - shown.mean) / shown.stdev
    for each in shown.classes:
        lower = -math.inf if each.lower is None else each.lower
        upper = math.inf if each.upper is None else each.upper
        assert each.count == sum(1 for sigma in sigmas if lower <= sigma < upper)
    assert sum(each.count for each in shown.classes) == len(values)
