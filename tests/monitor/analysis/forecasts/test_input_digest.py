"""Hourly digests detect that used inputs have changed."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.analysis.forecasts.input_digest import (
    MOST_HOURS,
    NEVER_MATCHES,
    Input,
    InputDigest,
    by_key,
    hashes,
)
from monitor.analysis.forecasts.inputs_sql import INPUT

HOUR = 3_600_000_000


def an_input(**changes: float) -> np.ndarray:
    fields: dict[str, float] = {"key": 1, "time": 5 * HOUR, "ended_at": 6 * HOUR, "known_at": 7 * HOUR}
    fields |= {"filed_at": 5 * HOUR, "value": 2.5, **changes}
    return np.array([tuple(fields.values())], INPUT)


def used(hour: int, hashed: int) -> Input:
    at = hour * HOUR
    return Input(1, at, at, at, at, 2.5, hour, hashed)


@pytest.mark.parametrize(
    "changes", [{"key": 2}, {"time": 1}, {"ended_at": 1}, {"known_at": 1}, {"value": 2.6}, {"value": -2.5}]
)
def test_an_input_that_differs_in_any_field_has_another_hash(changes: dict[str, float]) -> None:
    assert hashes(an_input()) == hashes(an_input())
    assert hashes(an_input()) != hashes(an_input(**changes))


def test_the_hours_in_which_inputs_are_filed_are_counted_from_1970() -> None:
    for filed_at, hour in ((0, 0), (HOUR - 1, 0), (HOUR, 1), (-1, -1)):
        assert by_key(an_input(filed_at=filed_at))[1][0].hour == hour


def test_the_order_of_inputs_does_not_change_the_digest() -> None:
    digest, other = InputDigest(), InputDigest()
    for hashed in (5, 2**64 - 1, 7):
        digest.add(used(3, hashed))
    for hashed in (7, 5, 2**64 - 1):
        other.add(used(3, hashed))
    assert digest.dump() == other.dump()
    assert InputDigest.load(digest.dump()) == digest
    assert digest.matches([3, 4], [used(3, 11)])
    assert not digest.matches([3], [used(3, 12)])
    assert not digest.matches([3, 4], [used(3, 11), used(4, 1)])


def test_hours_before_the_newest_are_forgotten_and_never_match() -> None:
    digest = InputDigest()
    for hour in range(MOST_HOURS + 5):
        digest.add(used(hour, 1))
    digest = InputDigest.load(digest.dump())
    assert len(digest.sums) == MOST_HOURS
    assert digest.matches([MOST_HOURS], [used(MOST_HOURS, 1)])
    assert not digest.matches([MOST_HOURS, 2], [used(MOST_HOURS, 1), used(2, 1)])
    digest.add(used(2, 1))
    assert len(digest.sums) == MOST_HOURS


def test_a_digest_exists_that_nothing_matches() -> None:
    assert not InputDigest.load(NEVER_MATCHES).matches([5], [])


def test_no_inputs_match_the_digest_of_no_inputs() -> None:
    assert InputDigest.load(None).matches([1], [])
    assert InputDigest.load(InputDigest().dump()) == InputDigest()
