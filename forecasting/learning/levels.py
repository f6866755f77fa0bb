"""The level of a series: several smoothers forget at different speeds; the recently best smoother is used.

Weights decay with elapsed time and not with each value, which suits irregular times (Wright, "Forecasting
data published at irregular time intervals using an extension of Holt's method", Management Science 32, 1986).
A value far from the level moves the level no further than a value at the edge of the usual errors (Huber's
function; Gelper, Fried, Croux, "Robust forecasting with exponential and Holt-Winters smoothing", Journal of
Forecasting 29, 2010). So an outlier leaves little behind, while the level follows a lasting shift within a
few values, since the usual error grows meanwhile.

A forecast for a time after the next value leans towards the slowest level that did well: knowledge of the
current state of the series ages, knowledge of the usual state does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import copysign, exp
from typing import ClassVar

from forecasting.learning.scale import TypicalSize

_HOLDING = 2.0  # time constants after the next value at which a forecast leaves the level
_TOLERANCE = 1.2  # a smoother with up to this multiple of the least loss does about as well
_LARGEST_SQUARABLE = 1e150
_LARGEST_SQUARE = 1e300


@dataclass(slots=True)
class Levels:
    """Smoothers side by side. Elapsed time is in typical gaps between values, so usually 1.

    The best smoother is the smoother with the least loss. The state stays finite.

    Attributes:
        MEMORIES: time constants of the smoothers in gaps, the slowest last.
        REACH: a value farther away than this number of typical errors counts as if it were at this distance.
        POWER: the loss is the sum of the absolute errors to this power.
        LOSS_DECAY: each new value multiplies the sum of the earlier errors by this factor.
    """

    MEMORIES: ClassVar[tuple[float, ...]]
    REACH: ClassVar[float]
    POWER: ClassVar[int]
    LOSS_DECAY: ClassVar[float]

    _levels: list[float] = field(default_factory=list, init=False)
    _weights: list[float] = field(default_factory=list, init=False)
    _losses: list[float] = field(default_factory=list, init=False)
    _typical_error: TypicalSize = field(default_factory=TypicalSize, init=False)

    def update(self, value: float, elapsed: float) -> float:
        """Learn *value*, which came *elapsed* gaps after the previous value.

        Returns:
            The absolute error of the forecast of *value*; 0 for the first value.
        """
        if not self._levels:
            self._begin(value)
            return 0.0
        error = self._score(value, elapsed)
        reach = self.REACH * self._typical_error.size
        self._weights = [
            weight * exp(-elapsed / memory) + 1.0
            for weight, memory in zip(self._weights, self.MEMORIES, strict=True)
        ]
        self._levels = [
            level + (step if -reach <= (step := value - level) <= reach else copysign(reach, step)) / weight
            for level, weight in zip(self._levels, self._weights, strict=True)
        ]
        return error

    @property
    def usual_error(self) -> float:
        """The typical absolute error; 0 before the second value."""
        return self._typical_error.size

    def change_scale(self, converted: Callable[[float], float], factor: float) -> None:
        """Convert the levels by *converted* to a scale on which distances are *factor* times as large."""
        self._levels = [converted(level) for level in self._levels]
        self._losses = [0.0] * len(self._losses)
        self._typical_error.size *= factor

    def expected(self, elapsed: float) -> float:
        """Return the forecast for *elapsed* gaps after the newest value; at least one value must be known."""
        late, best = 1.0 - elapsed, self.best()
        level = self._levels[best]
        if late >= 0.0:
            return level
        usual = self._usual()
        return usual + (level - usual) * exp(late / (_HOLDING * self.MEMORIES[best]))

    def best(self) -> int:
        """Return the index of the smoother with the least recent loss."""
        return self._losses.index(min(self._losses))

    def all_expected(self, elapsed: float) -> list[float]:
        """Return the forecast of each smoother for *elapsed* gaps after the newest value."""
        late = 1.0 - elapsed
        if late >= 0.0:
            return self._levels
        usual = self._usual()
        return [
            usual + (level - usual) * exp(late / (_HOLDING * memory))
            for level, memory in zip(self._levels, self.MEMORIES, strict=True)
        ]

    def _begin(self, value: float) -> None:
        self._levels = [value] * len(self.MEMORIES)
        self._weights = [1.0] * len(self.MEMORIES)
        self._losses = [0.0] * len(self.MEMORIES)

    def _score(self, value: float, elapsed: float) -> float:
        errors = [abs(value - level) for level in self.all_expected(elapsed)]
        error = errors[self.best()]
        self._typical_error.add(error)
        if self.POWER == 2:
            errors = [each * each if each < _LARGEST_SQUARABLE else _LARGEST_SQUARE for each in errors]
        decay = self.LOSS_DECAY
        self._losses = [decay * loss + each for loss, each in zip(self._losses, errors, strict=True)]
        return error

    def _usual(self) -> float:
        """Return the slowest level whose loss is close to the least loss.

        After a shift the losses of slow levels are larger.
        """
        tolerable = _TOLERANCE * min(self._losses)
        slowest = len(self._losses) - 1
        while self._losses[slowest] > tolerable:
            slowest -= 1
        return self._levels[slowest]


class MedianLevels(Levels):
    """Levels for the least absolute errors: they follow quickly, and outliers hardly move them."""

    __slots__ = ()
    MEMORIES = (2.0, 8.0, 32.0)
    REACH = 1.2
    POWER = 1
    LOSS_DECAY = 0.98


class MeanLevels(Levels):
    """Levels for the least squared errors: they follow slowly, and only extreme values are limited."""

    __slots__ = ()
    MEMORIES = (4.0, 16.0, 64.0)
    REACH = 6.0
    POWER = 2
    LOSS_DECAY = 0.99
