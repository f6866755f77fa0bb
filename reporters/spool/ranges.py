"""A set of sequence numbers, kept as ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Ranges:
    """Sequence numbers, as disjoint ranges (first, last) in order; neighbours are joined."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._firsts, self._lasts))

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return sum(last - first + 1 for first, last in self)

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._firsts, number) - 1
        return index >= 0 and number <= self._lasts[index]

    def add(self, first: int, last: int) -> None:
        """Add the numbers from *first* to *last*, both included."""
        start = bisect_left(self._lasts, first - 1)
        end = bisect_right(self._firsts, last + 1)
        if start < end:
            first, last = min(first, self._firsts[start]), max(last, self._lasts[end - 1])
        self._firsts[start:end] = [first]
        self._lasts[start:end] = [last]

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges of the numbers from *first* to *last* that are not in the set."""
        gaps = []
        start = bisect_left(self._lasts, first)
        for low, high in zip(self._firsts[start:], self._lasts[start:]):
            if low > last:
                break
            if first < low:
                gaps.append((first, low - 1))
            first = high + 1
        if first <= last:
            gaps.append((first, last))
        return gaps

    def count(self, first: int, last: int) -> int:
        """Return how many of the numbers from *first* to *last* are in the set."""
        return last - first + 1 - sum(high - low + 1 for low, high in self.missing(first, last))

    def discard_below(self, number: int) -> None:
        """Remove the ranges that end below *number*."""
        end = bisect_left(self._lasts, number)
        del self._firsts[:end], self._lasts[:end]
