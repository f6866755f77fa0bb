"""The 18 simple forecasters of the Network Weather Service, release 2.0.5, side by side.

Source: R. Wolski, N. Spring, J. Hayes, "The Network Weather Service", Future Generation Computer Systems 15
(1999), and the output of the released program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import add

from forecasting.learning.windows import SortedWindow, median_of_sorted

GAINS = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
PRIMARIES = (
    "last value",
    "running mean",
    *(f"{gain:.0%} smoothing" for gain in GAINS),
    "median of 31",
    "median of 5",
    "mean of 31",
    "mean of 5",
    "30% trimmed mean of 31",
    "30% trimmed mean of 51",
    "adaptive median of 5 to 21",
    "adaptive median of 21 to 51",
)
SMOOTHERS = range(2, 2 + len(GAINS))


@dataclass(slots=True)
class AdaptiveMedian:
    """The median of a window whose width changes by one at a time.

    Each value is compared with the medians of three widths: *width* - *step*, *width* and *width* + *step*.
    The width moves by one towards the width whose median is nearest to the value, within *least* and *most*.
    Adaptation starts when *most* values are known. With *exact* the narrowest candidate is a window of *step*
    values, as in the original program.
    """

    width: int
    least: int
    most: int
    step: int
    exact: bool = False

    def updated(self, window: SortedWindow) -> float:
        """Adapt the width to the newest value of *window* (the last *most* values); return the median."""
        if len(window) < self.most:
            return median_of_sorted(window.ordered, len(window))
        width = min(self.width, self.most)
        medians = [_median_of_last(window, candidate) for candidate in self._candidates(width)]
        less, same, more = _squared_distances(window.recent[-1], medians)
        if less < same and less < more:
            self.width = width - 1
        elif more < same:
            self.width = width + 1
        else:
            self.width = width
            return medians[1]
        return _median_of_last(window, self.width)

    def _candidates(self, width: int) -> tuple[int, int, int]:
        if self.exact:  # if width + step is too wide, the original tries the remaining width
            wider = self.step if width + self.step <= self.most else self.most - width - 1
            return self.step, width, wider
        return max(width - self.step, self.least), width, min(width + self.step, self.most)


@dataclass(slots=True)
class Primaries:
    """The state of the 18 forecasters, in the order of ``PRIMARIES``."""

    exact: bool = False
    _count: int = field(default=0, init=False)
    _total: float = field(default=0.0, init=False)
    _smoothed: list[float] = field(default_factory=list, init=False)
    _last_5: SortedWindow = field(default_factory=lambda: SortedWindow(5), init=False)
    _last_21: SortedWindow = field(default_factory=lambda: SortedWindow(21), init=False)
    _last_31: SortedWindow = field(default_factory=lambda: SortedWindow(31), init=False)
    _last_51: SortedWindow = field(default_factory=lambda: SortedWindow(51), init=False)
    _narrow: AdaptiveMedian = field(default_factory=lambda: AdaptiveMedian(10, 5, 21, 1), init=False)
    _wide: AdaptiveMedian = field(default_factory=lambda: AdaptiveMedian(30, 21, 51, 5), init=False)

    def __post_init__(self) -> None:
        self._narrow.exact = self._wide.exact = self.exact

    def updated(self, value: float) -> list[float]:
        """Learn *value*, and return what each forecaster predicts for the next value."""
        self._count += 1
        self._total += value
        self._smoothed = [
            level + gain * (value - level)
            for level, gain in zip(self._smoothed or [value] * len(GAINS), GAINS, strict=True)
        ]
        short, long, longest = self._last_5, self._last_31, self._last_51
        for window in (short, self._last_21, long, longest):
            window.add(value)
        return [
            value,
            self._total / self._count,
            *self._smoothed,
            median_of_sorted(long.ordered, len(long)),
            median_of_sorted(short.ordered, len(short)),
            trimmed_mean(long.ordered, 0.0),
            trimmed_mean(short.ordered, 0.0),
            trimmed_mean(long.ordered, 0.3),
            trimmed_mean(longest.ordered, 0.3),
            self._narrow.updated(self._last_21),
            self._wide.updated(longest),
        ]


def trimmed_mean(ordered: list[float], share: float) -> float:
    """Return the mean of the sorted numbers *ordered* without the *share* of them at each end.

    The number of omitted numbers is rounded down.
    """
    cut = int(share * len(ordered))
    inner = ordered[cut : len(ordered) - cut]
    return reduce(add, inner) / len(inner)  # not sum(), whose rounding differs between versions of Python


def _median_of_last(window: SortedWindow, width: int) -> float:
    """Return the median of the last *width* values.

    For a width below 2 the result is the number that the original program uses in place of the median.
    """
    if width < 0:
        return 0.0
    if width < 2:
        return window.ordered[0] / (2 - width)
    return median_of_sorted(window.ordered_last(width), width)


def _squared_distances(value: float, medians: list[float]) -> list[float]:
    return [(value - median) * (value - median) for median in medians]
