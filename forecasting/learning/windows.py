"""The last values of a series, sorted."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice


@dataclass(slots=True)
class SortedWindow:
    """The last *size* values: ``recent`` in order of arrival, ``ordered`` from the smallest to the largest.

    A search takes O(log size) comparisons. Values must not be NaN.
    """

    size: int
    recent: deque[float] = field(default_factory=deque, init=False)
    ordered: list[float] = field(default_factory=list, init=False)

    def __len__(self) -> int:
        return len(self.ordered)

    def add(self, value: float) -> None:
        """Add *value*; a full window drops its oldest value."""
        if len(self.recent) == self.size:
            del self.ordered[bisect_left(self.ordered, self.recent.popleft())]
        self.recent.append(value)
        insort(self.ordered, value)

    def drop_oldest(self, count: int) -> None:
        """Drop the *count* oldest values; no value if *count* is 0 or negative."""
        for _ in range(min(count, len(self.recent))):
            del self.ordered[bisect_left(self.ordered, self.recent.popleft())]

    def ordered_last(self, count: int) -> list[float]:
        """Return the last *count* values (all, if there are fewer), sorted."""
        skipped = len(self.recent) - count
        return sorted(islice(self.recent, skipped, None)) if skipped > 0 else self.ordered


def median_of_sorted(ordered: Sequence[float], count: int) -> float:
    """Return the median of the first *count* sorted numbers.

    For an even *count* the median is the mean of the middle two numbers.
    """
    half = count // 2
    return ordered[half] if count % 2 else (ordered[half - 1] + ordered[half]) / 2.0
