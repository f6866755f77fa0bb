"""The typical gap between the values of a series, which serves as the unit of elapsed time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_MAX_SECONDS = 1e300  # differences of any two clocks stay finite
_OUTLYING = 4.0  # typical gaps: the limit of one gap, since an outage is no evidence of the usual gap
_MIN_RATE = 0.05  # the weight of the newest gap in the typical one: about the last 20 gaps count


@dataclass(slots=True)
class Cadence:
    """Learns the typical gap between values. If the clock stands still or goes back, the gap is 0."""

    gaps: int = field(default=0, init=False)
    typical_seconds: float = field(default=0.0, init=False)
    newest_seconds: float = field(default=-math.inf, init=False)

    def add(self, time_seconds: float) -> float:
        """Add the time of the next value; return the time since the previous value, in typical gaps."""
        gap_seconds = self._since_newest(time_seconds)
        self.newest_seconds = max(self.newest_seconds, time_seconds)
        if gap_seconds:
            self.gaps += 1
            limited_seconds = (
                min(gap_seconds, _OUTLYING * self.typical_seconds) if self.typical_seconds else gap_seconds
            )
            rate = max(_MIN_RATE, 1.0 / self.gaps)
            self.typical_seconds += rate * (limited_seconds - self.typical_seconds)
        return self._in_gaps(gap_seconds)

    def ahead(self, at_seconds: float) -> float:
        """Return the time from the newest value to *at_seconds* in typical gaps; 0 if the gap is unknown."""
        return self._in_gaps(self._since_newest(at_seconds))

    def _since_newest(self, time_seconds: float) -> float:
        if self.newest_seconds == -math.inf:
            return 0.0
        return min(max(time_seconds - self.newest_seconds, 0.0), _MAX_SECONDS)

    def _in_gaps(self, seconds: float) -> float:
        return seconds / self.typical_seconds if self.typical_seconds else 0.0
