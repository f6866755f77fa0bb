from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from forecasting.queues.bound_weights import BoundEnsemble, BoundExpert

LOW, HIGH, LIMIT = 60.0, 6000.0, 48_000.0


def trust(*, ways: int = 2, quantile: float = 0.95) -> BoundEnsemble:
    return BoundEnsemble([BoundExpert() for _ in range(ways)], quantile=quantile)


def lived_through(
    ensemble: BoundEnsemble, waits: Sequence[float], bounds_of_experts: Sequence[float] = (LOW, HIGH)
) -> list[float]:
    """Return the bounds of jobs of which each has started before the next is submitted."""
    bounds = []
    for wait in waits:
        blended = ensemble.blend(bounds_of_experts)
        bounds.append(ensemble.bound(blended, bounds_of_experts, LIMIT))
        ensemble.score(wait > bounds[-1])
        ensemble.learn(bounds_of_experts, blended, wait)
    return bounds


def test_experts_that_agree_are_blended_to_their_bound() -> None:
    assert trust(ways=3).blend((30.0, 30.0, 30.0)) == 30.0
    assert trust(ways=3).blend((0.0, 0.0, 0.0)) == 0.0


@pytest.mark.parametrize("better", [0, 1])
def test_the_blend_moves_to_the_expert_with_the_lower_loss(better: int) -> None:
    draw, ensemble = random.Random(3), trust()
    top = (LOW, HIGH)[better]
    waits = [draw.uniform(0.9 * top, top) if draw.random() < 0.2 else 0.5 * LOW for _ in range(400)]
    lived_through(ensemble, waits)
    assert ensemble.blend((LOW, HIGH)) == pytest.approx(top, rel=0.01)


def test_an_expert_that_equalled_the_blend_at_first_does_not_keep_all_of_the_weight() -> None:
    draw, ensemble = random.Random(3), trust(ways=3)
    waits = [draw.uniform(0.9 * LOW, LOW) if draw.random() < 0.2 else 0.5 * LOW for _ in range(400)]
    lived_through(ensemble, waits[:50], (LOW, LOW, LOW))
    lived_through(ensemble, waits[50:], (HIGH, LOW, HIGH))
    assert ensemble.blend((HIGH, LOW, HIGH)) == pytest.approx(LOW, rel=0.01)


def test_a_prior_is_the_weight_of_an_expert_before_there_is_a_record() -> None:
    ensemble = BoundEnsemble([BoundExpert(0.75), BoundExpert(0.25)])
    assert ensemble.blend((99.0, 9999.0)) == pytest.approx(10.0**2.5 - 1.0)


def test_without_too_many_misses_no_caution_is_added() -> None:
    draw, ensemble = random.Random(4), trust()
    waits = [HIGH if draw.random() < 0.02 else 30.0 for _ in range(2000)]
    bounds = lived_through(ensemble, waits, (LOW, LOW))
    assert bounds[500:] == [LOW] * 1500


def test_consecutive_misses_raise_caution_at_once_and_hits_lower_it_slowly() -> None:
    ensemble = trust()
    blended = LOW
    for _ in range(6):
        ensemble.score(missed=True)
    ensemble.learn((LOW, HIGH), blended, 4.0 * HIGH)
    after = ensemble.bound(blended, (LOW, HIGH), LIMIT)
    assert HIGH < after < 1.5 * HIGH
    for _ in range(300):
        ensemble.score(missed=False)
    assert ensemble.bound(blended, (LOW, HIGH), LIMIT) == blended


def test_any_number_of_consecutive_misses_leaves_the_bound_limited() -> None:
    ensemble = trust()
    for _ in range(500):
        ensemble.score(missed=True)
    assert ensemble.bound(LOW, (LOW, HIGH), LIMIT) == pytest.approx(1.5 * HIGH)
    assert ensemble.bound(LOW, (LOW, HIGH), 1.2 * HIGH) == pytest.approx(1.2 * HIGH)


def test_caution_never_raises_a_bound_to_an_expert_that_does_not_lead() -> None:
    ensemble = trust(ways=3)
    for _ in range(6):
        ensemble.score(missed=True)
    assert LOW < ensemble.bound(LOW, (LOW, LOW, HIGH), LIMIT) <= 1.5 * LOW


def test_a_queue_with_too_many_misses_gets_at_least_the_bound_of_the_first_expert() -> None:
    ensemble = trust()
    for missed in [True] * 20 + [False] * 310:
        ensemble.score(missed)
    assert ensemble.bound(LOW, (HIGH, LOW), LIMIT) == HIGH  # 20 of 330 is more than one in 20
    for _ in range(200):
        ensemble.score(missed=False)
    assert ensemble.bound(LOW, (HIGH, LOW), LIMIT) == LOW


def test_a_late_queue_with_more_misses_than_chance_allows_gets_the_highest_leading_bound() -> None:
    early, late = trust(), BoundEnsemble([BoundExpert(), BoundExpert()], is_late=True)
    for missed in [True] * 15 + [False] * 400:  # 15 of 415 is less than one in 20
        early.score(missed)
        late.score(missed)
    assert early.bound(LOW, (LOW, HIGH), LIMIT) == LOW
    assert late.bound(LOW, (LOW, HIGH), LIMIT) == HIGH
    for _ in range(100):
        late.score(missed=False)
    assert late.bound(LOW, (LOW, HIGH), LIMIT) == LOW


def test_where_half_may_be_missed_caution_stays_far_from_the_longest_wait() -> None:
    ensemble = trust(quantile=0.5)
    for _ in range(100):
        ensemble.score(missed=True)
    assert HIGH < ensemble.bound(LOW, (LOW, HIGH), 200.0 * HIGH) < 1.3 * HIGH
