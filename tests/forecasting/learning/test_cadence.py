from __future__ import annotations

import math

import pytest

from forecasting.learning.cadence import Cadence


def after(*times_seconds: float) -> Cadence:
    cadence = Cadence()
    for time_seconds in times_seconds:
        cadence.add(time_seconds)
    return cadence


def test_time_is_measured_in_typical_gaps() -> None:
    cadence = after(0.0, 60.0, 120.0)
    assert cadence.typical_seconds == 60.0
    assert cadence.add(180.0) == 1.0
    assert cadence.ahead(300.0) == 2.0


def test_before_there_is_a_gap_no_time_passes() -> None:
    assert Cadence().ahead(100.0) == 0.0
    assert after(5.0).ahead(100.0) == 0.0
    assert after(5.0, 5.0).ahead(100.0) == 0.0


def test_a_clock_that_goes_backwards_lets_no_time_pass() -> None:
    cadence = after(0.0, 60.0, 120.0)
    assert cadence.add(60.0) == 0.0
    assert cadence.ahead(90.0) == 0.0
    assert cadence.add(180.0) == 1.0  # since the newest, not since the one before


def test_an_outage_hardly_changes_what_is_typical() -> None:
    times = [60.0 * index for index in range(30)]
    assert after(*times, times[-1] + 30 * 86_400.0).typical_seconds == pytest.approx(
        60.0 * (1.0 + 0.05 * 3.0)
    )


def test_a_new_rhythm_is_learned() -> None:
    slow = [3600.0 * index for index in range(100)]
    fast = [slow[-1] + 60.0 * index for index in range(1, 200)]
    assert after(*slow, *fast).typical_seconds == pytest.approx(60.0, rel=0.01)


def test_clocks_out_of_their_minds_leave_finite_numbers() -> None:
    cadence = after(-1.7e308, 1.7e308)
    assert math.isfinite(cadence.typical_seconds)
    assert cadence.ahead(1.7e308) == 0.0
