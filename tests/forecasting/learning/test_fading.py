from __future__ import annotations

import pytest

from forecasting.learning.fading import FadingValues


def after(*values: tuple[float, float]) -> FadingValues:
    """Return *values*: (time at which a value became known, value)."""
    recent = FadingValues()
    for known_at, value in values:
        recent.add(known_at, value)
    return recent


def test_by_hand_weights_fall_with_the_rank_of_the_value_known_last() -> None:
    recent = after((0.0, 30.0), (0.0, 10.0), (0.0, 20.0))
    values, quick, slow = recent.weighted(6.0)  # ten seconds are added to each age
    assert values.tolist() == [10.0, 20.0, 30.0]
    assert quick == pytest.approx([0.5 / 2**0.5, 0.5, 0.5 / 3**0.5])
    assert slow == pytest.approx([0.5 / 2**0.25, 0.5, 0.5 / 3**0.25])


def test_by_hand_weights_fall_with_the_time_since_a_value_was_known() -> None:
    _, quick, slow = after((0.0, 1.0), (65.0, 2.0)).weighted(71.0)
    assert quick == pytest.approx([2**-0.5 / 3.0, 0.5])
    assert slow == pytest.approx([2**-0.25 / 3.0, 0.5])


def test_only_the_last_300_values_count() -> None:
    recent = after(*((float(index), float(index)) for index in range(305)))
    values, quick, _ = recent.weighted(400.0)
    assert len(recent) == len(quick) == 300
    assert values[0] == 5.0


def test_weights_are_finite_at_any_time() -> None:
    _, quick, slow = after((-1e300, 1.0), (0.0, 2.0)).weighted(1e300)
    assert 0.0 < quick.sum() + slow.sum() < 1.0
