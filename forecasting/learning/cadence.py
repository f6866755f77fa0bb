"""How often values come: the typical gap, by which elapsed time is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_LONGEST_SECONDS = 1e300  # differences of clocks that are out of their minds stay finite
_OUTLYING = 4.0  # of typical gaps: an outage says little about how often values come
_LEAST_RATE = 0.05  # of the newest gap in the typical one: about the last 20 count


@dataclass(slots=True)
class Cadence:
    """Follows the times of values. A clock that stands still or goes backwards lets no time pass."""

    gaps: int = field(default=0, init=False)
    typical_seconds: float = field(default=0.0, init=False)
    newest_seconds: float = field(default=-math.inf, init=False)

    def note(self, time_seconds: float) -> float:
        """Take in the *time* of the next value and return how long it was in coming, in typical gaps."""
        gap_seconds = self._since_newest(time_seconds)
        self.newest_seconds = max(self.newest_seconds, time_seconds)
        if gap_seconds:
            self.gaps += 1
            usual = (
                min(gap_seconds, _OUTLYING * self.typical_seconds) if self.typical_seconds else gap_seconds
            )
            rate = max(_LEAST_RATE, 1.0 / self.gaps)
            self.typical_seconds += rate * (usual - self.typical_seconds)
        return self._in_gaps(gap_seconds)

    def ahead(self, at_seconds: float) -> float:
        """Return how far *at_seconds* is ahead of the newest value, in typical gaps; 0 where nothing is
        known of either."""
        return self._in_gaps(self._since_newest(at_seconds))

    def _since_newest(self, time_seconds: float) -> float:
        if self.newest_seconds == -math.inf:
            return 0.0
        return min(max(time_seconds - self.newest_seconds, 0.0), _LONGEST_SECONDS)

    def _in_gaps(self, seconds: float) -> float:
        return seconds / self.typical_seconds if self.typical_seconds else 0.0
