"""Whether the level of a series has shifted: then who still speaks of the old one is not listened to.

The truth may go far away for a value, and be back. Two values there, near each other, are taken for a shift
as long as in this series that was not wrong more often than right; one alone where levels have shifted for
good before, and wild values have not come; three always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
T = TypeVar("T", float, Numbers)

_FAR = 8.0  # typical misses
_NEAR = 0.25  # of the way from the old level to the new one: what is nearer to its end, or beyond, is there
_ONWARD = 2.0  # of that way, by which a level that has shifted may go on
_TRUSTED = (2, 0)  # how much trust one value there needs, and two; more need none
_MOST_TRUST = 3


@dataclass(slots=True)
class Shift:
    """Follows the truth, and what was expected of it."""

    believed: bool = field(default=False, init=False)
    _values: int = field(default=0, init=False)  # since the truth went far away; 0: it did not, or is back
    _left: float = field(default=0.0, init=False)  # what had been expected of the first of them
    _came: float = field(default=0.0, init=False)  # the first of them
    _usual_miss: float = field(default=0.0, init=False)  # at that time
    # how often so many values there were followed by another, less how often they were not
    _trust: list[int] = field(default_factory=lambda: [0, 0], init=False)

    @property
    def is_doubtful(self) -> bool:
        """Whether the truth went far away, and is not believed to stay there."""
        return self._values > 0 and not self.believed

    def listened_to(self, said: Numbers) -> Numbers:
        """Return what was *said*, but NaN for those who have not come over; all of it if nobody has."""
        return np.where(self._are_late(said), np.nan, said)

    def note(self, said: Numbers, expected: float, value: float, usual_miss: float) -> None:
        """Learn the truth, *value*, where experts *said* this and so much was *expected*."""
        if self._values and self._goes_on(said, value):
            self._values += 1
            self.believed = self.believed or self._is_trusted()
            return
        self.believed, self._values = False, 0
        if abs(value - expected) > _FAR * usual_miss:
            self._values, self._left, self._came, self._usual_miss = 1, expected, value, usual_miss
            self.believed = self._is_trusted()

    def _goes_on(self, said: Numbers, value: float) -> bool:
        """Whether *value* is where those before it were, and somebody is late."""
        way = abs(self._came - self._left)
        short_by = self._short_by(value)
        room_beyond = _NEAR * way if self._values == 1 else _ONWARD * way
        stays = -room_beyond <= short_by <= _NEAR * way
        if self._values <= len(self._trust):
            trust = self._trust[self._values - 1] + (1 if stays else -1)
            self._trust[self._values - 1] = max(-_MOST_TRUST, min(trust, _MOST_TRUST))
        return stays and (not self.believed or bool(self._are_late(said).any()))

    def _is_trusted(self) -> bool:
        return self._values > len(_TRUSTED) or self._trust[self._values - 1] >= _TRUSTED[self._values - 1]

    def _are_late(self, said: Numbers) -> NDArray[np.bool_]:
        """Who has not come over: to some typical misses, and to the last part of the way. Nobody, if all."""
        near = min(_NEAR * abs(self._came - self._left), _FAR * self._usual_miss)
        short_by = self._short_by(said)
        return (short_by > near) & (short_by <= near).any()

    def _short_by(self, numbers: T) -> T:
        """How much *numbers* lack of the new level; negative beyond it."""
        return (self._came - numbers) * math.copysign(1.0, self._came - self._left)
