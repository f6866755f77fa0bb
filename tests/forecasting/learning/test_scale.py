from __future__ import annotations

import pytest

from forecasting.learning.scale import TypicalSize


def trained(*misses: float, number: float = 0.0) -> TypicalSize:
    typical = TypicalSize()
    for miss in misses:
        typical.add(miss, number)
    return typical


def test_it_is_the_mean_size_whatever_the_sign() -> None:
    assert trained(1.0, -3.0, 2.0, -2.0).size == pytest.approx(2.0)


def test_an_outlier_widens_it_by_less_than_half_and_leading_zeros_do_not_count() -> None:
    assert trained(0.0, 2.0, *[-2.0] * 50, 1e300).size == pytest.approx(2.0 * 1.45)


def test_the_scale_follows_a_new_usual_size() -> None:
    assert trained(*[1.0, -1.0] * 50, *[50.0] * 100).size == pytest.approx(50.0, rel=0.05)
    assert trained(*[2.0] * 60, *[1e9] * 200, number=100.0).size == pytest.approx(1e9, rel=0.1)


def test_rounding_errors_do_not_limit_the_scale() -> None:
    assert trained(*[1e-13] * 100, *[1.0] * 90, number=1000.0).size == pytest.approx(1.0, rel=0.1)


def test_without_errors_so_far_the_unit_comes_from_the_value_itself() -> None:
    assert TypicalSize().unit(5e6) == pytest.approx(5.0)
    assert TypicalSize().unit() > 0.0


def test_a_standard_number_is_in_usual_sizes_up_to_a_limit_and_0_before_there_are_any() -> None:
    assert trained(2.0, 2.0).standardised(-5.0, 8.0) == -2.5
    assert trained(2.0, 2.0).standardised(-1e300, 8.0) == -8.0
    assert trained(0.0).standardised(5.0, 8.0) == 0.0
