"""The forecaster battery of the Network Weather Service, release 2.0.5.

18 simple *primaries* forecast the next value. 16 *selectors* each answer with the primary whose errors were
least: over all history or over the last few errors, squared or absolute. Two final *picks* choose among the
selectors by the selectors' own errors over all history: least mean squared (MSE) or absolute (MAE) error. In
every choice the first of equals wins. Sources: R. Wolski, "Dynamically forecasting network performance using
the Network Weather Service", Cluster Computing 1 (1998); R. Wolski, N. Spring, J. Hayes, "The Network Weather
Service", Future Generation Computer Systems 15 (1999); and what the released program answers.

``Method(exact=True)`` answers as the released program does, bit for bit, oddities included:

- smoothers answer 0 before there are data, and that first miss counts;
- the MAE pick is scored against 0 at the first value;
- of the last errors at most 97 can be seen, and from 98 on sums are divided by 98;
- an adaptive median tries windows of its step, not of its window plus or minus its step.

``Method()`` has none of these: nothing is scored before there are data, 100 errors are kept, and an adaptive
median tries its neighbours within its limits.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, Literal

from forecasting.base import Age, Forecast
from forecasting.windows import SortedWindow, middle

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
_SMOOTHERS = range(2, 2 + len(GAINS))
_ERROR_WINDOWS = (1, 5, 10, 20, 30, 50, 100)
_KEPT_ERRORS = 100
_VISIBLE_SUMS = 98  # of the original's ring of 100

Loss = Literal["mae", "mse"]


@dataclass(frozen=True)
class Pick:
    """A final answer: the *forecast*, the mean *error* of such answers so far, the index in ``PRIMARIES``."""

    forecast: float
    error: float
    primary: int


class Method:
    """Forecasts with the MAE pick; ``pick`` and ``primaries`` show what is behind it."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = True

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self._age = Age()
        self._primaries = _Primaries(exact=exact)
        self._forecasts: list[float] = []  # of the primaries
        self._primary_errors = _Errors(len(PRIMARIES))
        self._selected: list[int] = []  # by each selector: the index of a primary
        self._selector_errors = _Errors(2 + 2 * len(_ERROR_WINDOWS))
        self._picked = {"mse": 0, "mae": 0}  # the index of a primary
        self._pick_errors = {"mse": 0.0, "mae": 0.0}  # sums

    def update(self, time_seconds: float, value: float) -> None:
        self._age.note(time_seconds, value)
        value = float(value)
        if self._forecasts:
            self._score(value)
        elif self._exact:
            self._score_nothing(value)
        self._forecasts = self._primaries.updated(value)
        self._select()

    def forecast(self, at_seconds: float) -> Forecast:
        self._age.require(1)
        return self._age.forecast(self.pick("mae").forecast, "nws", at_seconds)

    def primaries(self) -> Sequence[float]:
        """Return the forecasts of ``PRIMARIES``, in that order; empty before there are data."""
        return self._forecasts

    def pick(self, loss: Loss) -> Pick:
        """Return the final answer by *loss*; "mse" gives a squared error.

        Raises:
            Abstained: no value is known yet.
        """
        self._age.require(1)
        scored = self._age.n if self._exact and loss == "mae" else self._age.n - 1
        error = self._pick_errors[loss] / scored if scored else 0.0
        return Pick(self._forecasts[self._picked[loss]], error, self._picked[loss])

    def _score(self, value: float) -> None:
        """Hold everything that was forecast against *value*."""
        errors = [abs(forecast - value) for forecast in self._forecasts]
        self._pick_errors["mse"] += errors[self._picked["mse"]] * errors[self._picked["mse"]]
        self._pick_errors["mae"] += errors[self._picked["mae"]]
        self._selector_errors.add([errors[primary] for primary in self._selected])
        self._primary_errors.add(errors)

    def _score_nothing(self, value: float) -> None:
        """As the original does at the first value: the MAE pick and the smoothers had said 0."""
        self._pick_errors["mae"] += abs(value)
        self._primary_errors.add(
            [abs(value) if index in _SMOOTHERS else 0.0 for index in range(len(PRIMARIES))]
        )

    def _select(self) -> None:
        """Let the selectors choose among the primaries, and the picks among the selectors."""
        scored = self._age.n - 1
        counts = [scored] * len(PRIMARIES)
        within_reach = min(scored, _KEPT_ERRORS)
        if self._exact:
            counts = [scored + (index in _SMOOTHERS) for index in range(len(PRIMARIES))]
            within_reach = max(min(scored, _VISIBLE_SUMS) - 1, 0)
        squared, absolute = self._primary_errors.squared, self._primary_errors.absolute
        windows = [min(window, within_reach) for window in _ERROR_WINDOWS]
        self._selected = [
            _first_least(_total_means(squared[-1], counts)),
            _first_least(_total_means(absolute[-1], counts)),
            *_selections(squared, windows, counts),
            *_selections(absolute, windows, counts),
        ]
        divisor = min(scored, _VISIBLE_SUMS) if self._exact else scored
        for loss, sums in (("mse", self._selector_errors.squared), ("mae", self._selector_errors.absolute)):
            best = _first_least([total / divisor for total in sums[-1]]) if divisor else 0
            self._picked[loss] = self._selected[best]


class _Errors:
    """The errors of several forecasters, as running sums: row k holds the sums up to the k-th last error."""

    def __init__(self, forecasters: int) -> None:
        nothing = [0.0] * forecasters
        self.absolute: deque[list[float]] = deque([nothing], maxlen=_KEPT_ERRORS + 1)
        self.squared: deque[list[float]] = deque([nothing], maxlen=_KEPT_ERRORS + 1)

    def add(self, errors: Iterable[float]) -> None:
        """Add one absolute error for each forecaster."""
        errors = list(errors)
        self.absolute.append([total + error for total, error in zip(self.absolute[-1], errors, strict=True)])
        self.squared.append(
            [total + error * error for total, error in zip(self.squared[-1], errors, strict=True)]
        )


def _selections(sums: deque[list[float]], windows: Iterable[int], counts: Sequence[int]) -> list[int]:
    """Return for each of *windows* the forecaster of the least mean error in it; window 0 is all history."""
    chosen: dict[int, int] = {}  # early on many windows reach equally far
    for window in windows:
        if window not in chosen:
            means = _window_means(sums, window) if window else _total_means(sums[-1], counts)
            chosen[window] = _first_least(means)
    return [chosen[window] for window in windows]


def _total_means(sums: Iterable[float], counts: Iterable[int]) -> list[float]:
    return [total / count if count else math.inf for total, count in zip(sums, counts, strict=True)]


def _window_means(sums: deque[list[float]], window: int) -> list[float]:
    return [(newest - older) / window for newest, older in zip(sums[-1], sums[-1 - window], strict=True)]


def _first_least(numbers: list[float]) -> int:
    return numbers.index(min(numbers))


class _Primaries:
    """The 18 simple forecasters, in the order of ``PRIMARIES``."""

    def __init__(self, *, exact: bool) -> None:
        self._count = 0
        self._total = 0.0
        self._smoothed: list[float] = []
        self._windows = {size: SortedWindow(size) for size in (5, 21, 31, 51)}
        self._adaptive = (
            _AdaptiveMedian(self._windows[21], start=10, least=5, step=1, exact=exact),
            _AdaptiveMedian(self._windows[51], start=30, least=21, step=5, exact=exact),
        )

    def updated(self, value: float) -> list[float]:
        """Learn *value*, and return what each forecaster says next."""
        self._count += 1
        self._total += value
        self._smoothed = [
            level + gain * (value - level)
            for level, gain in zip(self._smoothed or [value] * len(GAINS), GAINS, strict=True)
        ]
        for window in self._windows.values():
            window.add(value)
        short, long, longest = self._windows[5], self._windows[31], self._windows[51]
        return [
            value,
            self._total / self._count,
            *self._smoothed,
            middle(long.ordered, len(long)),
            middle(short.ordered, len(short)),
            _trimmed_mean(long.ordered, 0.0),
            _trimmed_mean(short.ordered, 0.0),
            _trimmed_mean(long.ordered, 0.3),
            _trimmed_mean(longest.ordered, 0.3),
            *(median.updated(value) for median in self._adaptive),
        ]


def _trimmed_mean(ordered: list[float], share: float) -> float:
    """The mean of *ordered* without int(*share* of it) at each end."""
    cut = int(share * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    return reduce(add, kept) / len(kept)  # not sum(), whose rounding differs between versions of Python


class _AdaptiveMedian:
    """The median of a window that moves by one towards the width whose median is nearest to the newest value.

    It adapts once the *values* hold as many as the widest window.
    """

    def __init__(self, values: SortedWindow, *, start: int, least: int, step: int, exact: bool) -> None:
        self._values = values
        self._width = start
        self._least = least
        self._most = values.size
        self._step = step
        self._exact = exact

    def updated(self, value: float) -> float:
        """Adapt to *value*, the newest of the values, and return the median."""
        if len(self._values) < self._most:
            return middle(self._values.ordered, len(self._values))
        width = min(self._width, self._most)
        candidates = self._original_widths(width) if self._exact else self._neighbours(width)
        less, same, more = (self._squared_error(value, candidate) for candidate in candidates)
        if less < same and less < more:
            width -= 1
        elif more < same:
            width += 1
        self._width = width
        return self._median(width)

    def _neighbours(self, width: int) -> tuple[int, int, int]:
        return max(width - self._step, self._least), width, min(width + self._step, self._most)

    def _original_widths(self, width: int) -> tuple[int, int, int]:
        """The step for both neighbours; near the widest window, for the wider one what is left to it."""
        return self._step, width, self._step if width + self._step <= self._most else self._most - width - 1

    def _squared_error(self, value: float, width: int) -> float:
        error = value - self._median(width)
        return error * error

    def _median(self, width: int) -> float:
        """The median of the last *width* values; below 2, what the original finds in its memory."""
        if width < 0:
            return 0.0
        if width < 2:
            return self._values.ordered[0] / (2 - width)
        return middle(self._values.ordered_last(width), width)
