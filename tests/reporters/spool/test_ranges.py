"""Ranges behave like a set of integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reporters.spool.ranges import Ranges

numbers = st.integers(0, 30)
pairs = st.tuples(numbers, st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(pairs), pairs)
def test_ranges_behave_like_a_set_of_integers(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    ranges = Ranges(added)
    plain = {number for first, last in added for number in range(first, last + 1)}
    assert [number for first, last in ranges for number in range(first, last + 1)] == sorted(plain)
    assert len(ranges) == len(plain)
    assert all((number in ranges) == (number in plain) for number in range(45))
    wanted = set(range(asked[0], asked[1] + 1))
    missing = [number for first, last in ranges.missing(*asked) for number in range(first, last + 1)]
    assert missing == sorted(wanted - plain)
    assert ranges.count(*asked) == len(wanted & plain)
    lasts, firsts = [last for _, last in ranges], [first for first, _ in ranges]
    assert all(last + 1 < first for last, first in zip(lasts, firsts[1:], strict=False))


def test_old_ranges_are_discarded_whole() -> None:
    ranges = Ranges([(0, 3), (5, 9)])
    ranges.discard_below(4)
    assert list(ranges) == [(5, 9)]
