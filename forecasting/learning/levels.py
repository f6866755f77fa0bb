"""The level of a series: smoothers that forget at several speeds, and the one that has missed least of late.

Weights decay with elapsed time and not with each value, as suits values that come when they come (Wright,
"Forecasting data published at irregular time intervals using an extension of Holt's method", Management
Science 32, 1986). A value far from the level moves it no further than one at the edge of what is usual does
(Huber's function; Gelper, Fried, Croux, "Robust forecasting with exponential and Holt-Winters smoothing",
Journal of Forecasting 29, 2010): one wild value leaves little behind, and a shift of level, which does not
go away, is caught up with in a few values, since what is usual grows meanwhile.

A forecast for later than the next value leans towards the slowest level that did well: what is known of
the state of today ages, what is known of the usual state does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import copysign, exp
from typing import ClassVar

from forecasting.learning.scale import Typical

_HOLDING = 2.0  # memories for which a level is believed beyond the next value
_TRUSTED = 1.2  # times the losses of the best
_LARGEST_SQUARABLE = 1e150
_LARGEST_SQUARE = 1e300


@dataclass(slots=True)
class Levels:
    """Smoothers side by side. Elapsed time is in gaps between values: 1 is usual, 0 a clock that stands.

    *MEMORIES* are their time constants in gaps, the slowest last; values further than *REACH* typical misses
    away count as if they were at that distance; *POWER* is that of the loss by which the best is chosen,
    *KEPT* the part of old losses that is kept at each value. State of any size stays finite.
    """

    MEMORIES: ClassVar[tuple[float, ...]]
    REACH: ClassVar[float]
    POWER: ClassVar[int]
    KEPT: ClassVar[float]

    _levels: list[float] = field(default_factory=list, init=False)
    _weights: list[float] = field(default_factory=list, init=False)
    _losses: list[float] = field(default_factory=list, init=False)
    _typical_miss: Typical = field(default_factory=Typical, init=False)

    def update(self, value: float, elapsed: float) -> float:
        """Learn *value*, which came *elapsed* gaps after the one before, and return how far off the answer
        would have been; 0 for the first."""
        if not self._levels:
            self._begin(value)
            return 0.0
        miss = self._score(value, elapsed)
        reach = self.REACH * self._typical_miss.size
        self._weights = [
            weight * exp(-elapsed / memory) + 1.0
            for weight, memory in zip(self._weights, self.MEMORIES, strict=True)
        ]
        self._levels = [
            level
            + (error if -reach <= (error := value - level) <= reach else copysign(reach, error)) / weight
            for level, weight in zip(self._levels, self._weights, strict=True)
        ]
        return miss

    @property
    def usual_miss(self) -> float:
        """How far off the answers usually were; 0 before one was."""
        return self._typical_miss.size

    def move(self, to: Callable[[float], float], stretch: float) -> None:
        """Go over to another scale, on which *to* says where a level is; distances are *stretch* as large."""
        self._levels = [to(level) for level in self._levels]
        self._losses = [0.0] * len(self._losses)
        self._typical_miss.size *= stretch

    def expected(self, elapsed: float) -> float:
        """Return the answer for *elapsed* gaps after the newest value, of which there must be one."""
        late, best = 1.0 - elapsed, self.best()
        level = self._levels[best]
        if late >= 0.0:
            return level
        usual = self._usual()
        return usual + (level - usual) * exp(late / (_HOLDING * self.MEMORIES[best]))

    def best(self) -> int:
        """The index of the smoother that has missed least of late."""
        return self._losses.index(min(self._losses))

    def all_expected(self, elapsed: float) -> list[float]:
        """Return what each smoother expects, in the order of ``MEMORIES``."""
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
        misses = [abs(value - level) for level in self.all_expected(elapsed)]
        miss = misses[self.best()]
        self._typical_miss.add(miss)
        if self.POWER == 2:
            misses = [each * each if each < _LARGEST_SQUARABLE else _LARGEST_SQUARE for each in misses]
        kept = self.KEPT
        self._losses = [kept * loss + each for loss, each in zip(self._losses, misses, strict=True)]
        return miss

    def _usual(self) -> float:
        """The slowest level that is not belied by what came of late, as it is after a shift."""
        tolerable = _TRUSTED * min(self._losses)
        slowest = len(self._losses) - 1
        while self._losses[slowest] > tolerable:
            slowest -= 1
        return self._levels[slowest]


class MedianLevels(Levels):
    """For absolute losses: fast, and hardly moved by outliers."""

    __slots__ = ()
    MEMORIES = (2.0, 8.0, 32.0)
    REACH = 1.2
    POWER = 1
    KEPT = 0.98


class MeanLevels(Levels):
    """For squared losses: slow, and moved by all but the wildest values."""

    __slots__ = ()
    MEMORIES = (4.0, 16.0, 64.0)
    REACH = 6.0
    POWER = 2
    KEPT = 0.99
