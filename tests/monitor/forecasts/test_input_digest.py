"""Sums of what was used tell, hour by hour, whether it is what it was."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.forecasts.input_digest import MOST_HOURS, NEVER_SO, Used, hashes, hours
from monitor.forecasts.inputs_sql import INPUT

HOUR = 3_600_000_000


def an_input(**changes: float) -> np.ndarray:
    said = {"metric": 1, "time": 5 * HOUR, "known_at": 6 * HOUR, "value": 2.5, **changes}
    return np.array([tuple(said.values())], INPUT)


@pytest.mark.parametrize(
    "changes", [{"metric": 2}, {"time": 1}, {"known_at": 1}, {"value": 2.6}, {"value": -2.5}]
)
def test_an_input_that_is_another_in_anything_has_another_hash(changes: dict[str, float]) -> None:
    assert hashes(an_input()) == hashes(an_input())
    assert hashes(an_input()) != hashes(an_input(**changes))


def test_the_hour_of_a_time_is_counted_from_1970() -> None:
    assert hours(np.array([0, HOUR - 1, HOUR, -1])).tolist() == [0, 0, 1, -1]


def test_what_was_used_is_what_it_was_whatever_the_order() -> None:
    one, other = Used(), Used()
    for hashed in (5, 2**64 - 1, 7):
        one.add(3, hashed)
    for hashed in (7, 5, 2**64 - 1):
        other.add(3, hashed)
    assert one.dump() == other.dump()
    assert Used.load(one.dump()) == one
    assert one.are({3: 11, 4: 0}) is True
    assert one.are({3: 12}) is False
    assert one.are({3: 11, 4: 1}) is False


def test_of_hours_that_are_long_ago_only_the_total_is_remembered() -> None:
    used = Used()
    for hour in range(MOST_HOURS + 5):
        used.add(hour, 1)
    used = Used.load(used.dump())
    assert (len(used.sums), used.total) == (MOST_HOURS, MOST_HOURS + 5)
    assert used.are({MOST_HOURS: 1}) is True
    assert used.are({MOST_HOURS: 1, 2: 1}) is None
    assert used.are({MOST_HOURS: 2, 2: 1}) is False
    used.add(2, 1)
    assert (len(used.sums), used.total) == (MOST_HOURS, MOST_HOURS + 6)


def test_there_are_sums_that_nothing_comes_to() -> None:
    never = Used.load(NEVER_SO)
    assert never.are({5: 0}) is None  # so that everything is looked at
    assert never.total == 1


def test_nothing_used_is_nothing_anywhere() -> None:
    assert Used.load(None).are({1: 0}) is True
    assert Used.load(Used().dump()) == Used()
