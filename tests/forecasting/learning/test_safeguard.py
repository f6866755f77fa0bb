from __future__ import annotations

import pytest

from forecasting.learning.safeguard import Safeguard


def trained(error: float, simple_error: float, count: int = 60) -> Safeguard:
    safeguard = Safeguard()
    for _ in range(count):
        safeguard.update(10.0 + error, 10.0 + simple_error, 10.0)
    return safeguard


def test_an_answer_that_is_about_as_good_stays_exactly() -> None:
    assert trained(1.0, 1.0).guarded(5.0, 9.0) == 5.0
    assert Safeguard().guarded(5.0, 9.0) == 5.0


def test_a_simple_forecast_that_is_clearly_better_replaces_the_answer() -> None:
    assert trained(1.5, 1.0).guarded(5.0, 9.0) == pytest.approx(9.0, abs=0.01)


def test_one_large_error_decides_nothing() -> None:
    safeguard = trained(1.0, 1.4)
    safeguard.update(1e9, 10.0, 10.0)
    assert safeguard.guarded(5.0, 9.0) == 5.0
