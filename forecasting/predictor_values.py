"""The values of a predictor by the time at which each became known; no value is used before this time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from forecasting.base import LARGEST_VALUE, InvalidNumber, Source, is_usable

MAX_ROWS = 16  # rows of each source: enough for runs that started before its newest value was known


def key(source: Source) -> str:
    """Return *source* as text: the key of the source in a stored state."""
    return "\n".join(source)


def source(key: str) -> Source:
    """Return the source whose text is *key*: the inverse of ``key``."""
    return Source(*key.split("\n", 1))


def require_usable(time_seconds: float, known_at_seconds: float, value: float) -> None:
    """Raise InvalidNumber if a time is not finite, or *value* is not finite or above ``LARGEST_VALUE``."""
    if not is_usable(value):
        raise InvalidNumber(f"expected a finite value of at most {LARGEST_VALUE:g}, got {value!r}")
    if not (math.isfinite(time_seconds) and math.isfinite(known_at_seconds)):
        raise InvalidNumber(f"expected finite times, got {time_seconds!r} and {known_at_seconds!r}")


@dataclass(slots=True)
class PredictorValues:
    """Rows of numbers from one source, in the order of the times at which the rows became known.

    At most ``MAX_ROWS`` rows are kept; old rows have longer intervals than new rows. So there is a row that
    was known at the start of a run, or a little before, even if the run takes many hours.
    """

    _known_at: list[float] = field(default_factory=list, init=False)
    _rows: list[list[float]] = field(default_factory=list, init=False)

    def add(self, known_at_seconds: float, row: list[float]) -> None:
        """Add *row*; a row that is out of order counts as known at the same time as the newest row."""
        if self._known_at:
            known_at_seconds = max(known_at_seconds, self._known_at[-1])
        self._known_at.append(known_at_seconds)
        self._rows.append(row)
        if len(self._rows) > MAX_ROWS:
            dispensable = most_dispensable(self._known_at)
            del self._known_at[dispensable], self._rows[dispensable]

    def newest(self, at_seconds: float) -> list[float] | None:
        """Return the newest row that was known at *at_seconds*; None if no row was."""
        count = bisect_right(self._known_at, at_seconds)
        return self._rows[count - 1] if count else None


def most_dispensable(times: Sequence[float]) -> int:
    """Return the index of the row whose removal leaves the shortest gap relative to the row's age.

    *times* are those of the rows, oldest first. The row is never the newest or the oldest row.
    """
    now = times[-1]
    least, dispensable = math.inf, 1
    for index in range(1, len(times) - 1):
        older, age = times[index - 1], now - times[index]
        gap = (times[index + 1] - older) / age if age > 0.0 else math.inf
        if gap < least:
            least, dispensable = gap, index
    return dispensable
