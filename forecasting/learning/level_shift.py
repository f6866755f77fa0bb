"""Detect a shift of the level of a series: experts that still predict the old level are then muted.

A value far away from the level is either an outlier or the first value of a new level. How many such values
near each other prove a shift depends on the series: one value, if earlier far values mostly began a new
level; two values, unless two far values were mostly outliers so far; three values always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
T = TypeVar("T", float, Numbers)

_FAR = 8.0  # typical errors
_NEAR = 0.25  # share of the distance between the levels: a number this near is at the new level
_ONWARD = 2.0  # times the distance between the levels: the limit of a value beyond the new level
_REQUIRED_TRUST = (2, 0)  # for one far value and for two; three values need none
_MAX_TRUST = 3


@dataclass(slots=True)
class LevelShift:
    """Compares the actual values with their forecasts to detect a shift of level."""

    is_believed: bool = field(default=False, init=False)
    _values: int = field(default=0, init=False)  # consecutive far values; 0 at the old level
    _old_level: float = field(default=0.0, init=False)  # the forecast of the first far value
    _new_level: float = field(default=0.0, init=False)  # the first far value
    _usual_error: float = field(default=0.0, init=False)  # before the first far value
    # by number of far values (one, two): how often another one followed, minus how often none did
    _trust: list[int] = field(default_factory=lambda: [0, 0], init=False)

    @property
    def is_doubtful(self) -> bool:
        """Whether the newest values are far away from the level, but do not prove a shift."""
        return self._values > 0 and not self.is_believed

    def dismiss(self) -> None:
        """Return to the old level: what follows is no evidence of a new one."""
        self.is_believed, self._values = False, 0

    def without_late(self, forecasts: Numbers) -> Numbers:
        """Return *forecasts* with NaN in place of late forecasts, which still predict the old level.

        If all forecasts are late, they are returned unchanged.
        """
        return np.where(self._are_late(forecasts), np.nan, forecasts)

    def update(self, forecasts: Numbers, expected: float, value: float, usual_error: float) -> None:
        """Learn the actual *value*.

        Args:
            forecasts: the forecasts of *value* by the experts.
            expected: the forecast of *value* by the blend.
            usual_error: the usual absolute error of the blend.
        """
        if self._values and self._continues(forecasts, value):
            self._values += 1
            self.is_believed = self.is_believed or self._is_trusted()
            return
        self.is_believed, self._values = False, 0
        if abs(value - expected) > _FAR * usual_error:
            self._values, self._old_level, self._new_level = 1, expected, value
            self._usual_error = usual_error
            self.is_believed = self._is_trusted()

    def _continues(self, forecasts: Numbers, value: float) -> bool:
        """Return whether *value* continues the shift: the value is at the new level.

        After a proved shift, at least one forecast must still be late as well.
        """
        distance = abs(self._new_level - self._old_level)
        short_by = self._short_by(value)
        room_beyond = _NEAR * distance if self._values == 1 else _ONWARD * distance
        stays = -room_beyond <= short_by <= _NEAR * distance
        if self._values <= len(self._trust):
            trust = self._trust[self._values - 1] + (1 if stays else -1)
            self._trust[self._values - 1] = max(-_MAX_TRUST, min(trust, _MAX_TRUST))
        return stays and (not self.is_believed or bool(self._are_late(forecasts).any()))

    def _is_trusted(self) -> bool:
        count = self._values
        return count > len(_REQUIRED_TRUST) or self._trust[count - 1] >= _REQUIRED_TRUST[count - 1]

    def _are_late(self, forecasts: Numbers) -> NDArray[np.bool_]:
        """Return a mask of the forecasts short of the new level; all False if all are short of it."""
        near = min(_NEAR * abs(self._new_level - self._old_level), _FAR * self._usual_error)
        short_by = self._short_by(forecasts)
        return (short_by > near) & (short_by <= near).any()

    def _short_by(self, numbers: T) -> T:
        """Return how far *numbers* are short of the new level; negative for numbers beyond the new level."""
        return (self._new_level - numbers) * math.copysign(1.0, self._new_level - self._old_level)
