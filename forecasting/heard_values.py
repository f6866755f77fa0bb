"""What was heard of another series, and when: so that nobody uses a value before it was known."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field

from forecasting.base import LARGEST_VALUE, InvalidNumber, Source, is_usable

KEPT = 16  # of each source: for runs that started before its newest value was known


def key(source: Source) -> str:
    """The name under which a state keeps *source*."""
    return "\n".join(source)


def source(key: str) -> Source:
    """The source that is kept under *key*."""
    return Source(*key.split("\n", 1))


def require_usable(time_seconds: float, known_at_seconds: float, value: float) -> None:
    """Raise InvalidNumber for what no method can work with."""
    if not is_usable(value):
        raise InvalidNumber(f"expected a finite value of at most {LARGEST_VALUE:g}, got {value!r}")
    if not (math.isfinite(time_seconds) and math.isfinite(known_at_seconds)):
        raise InvalidNumber(f"expected finite times, got {time_seconds!r} and {known_at_seconds!r}")


@dataclass(slots=True)
class Heard:
    """What one source showed, by the time from which it was known; each a row of numbers.

    Of what is older than the newest few, ever fewer are kept the longer ago they were: a run of many hours
    still finds what was known at its start, or a little before.
    """

    _known_at: list[float] = field(default_factory=list, init=False)
    _rows: list[list[float]] = field(default_factory=list, init=False)

    def add(self, known_at_seconds: float, row: list[float]) -> None:
        """Take *row* in; what comes out of order counts as known no earlier than what came before it."""
        if self._known_at:
            known_at_seconds = max(known_at_seconds, self._known_at[-1])
        self._known_at.append(known_at_seconds)
        self._rows.append(row)
        if len(self._rows) > KEPT:
            dispensable = self._most_dispensable()
            del self._known_at[dispensable], self._rows[dispensable]

    def newest(self, at_seconds: float) -> list[float] | None:
        """Return the newest row of those that were known at *at_seconds*; None: none was."""
        known = bisect_right(self._known_at, at_seconds)
        return self._rows[known - 1] if known else None

    def _most_dispensable(self) -> int:
        """The one whose gap, once it is gone, is the shortest for its age; never the newest or the oldest."""
        times = self._known_at
        now = times[-1]
        least, dispensable = math.inf, 1
        for index in range(1, len(times) - 1):
            older, age = times[index - 1], now - times[index]
            gap = (times[index + 1] - older) / age if age > 0.0 else math.inf
            if gap < least:
                least, dispensable = gap, index
        return dispensable
