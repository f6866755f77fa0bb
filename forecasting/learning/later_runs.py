"""Tell which values come too late: enough runs that started after the end of their run are known already.

Methods take the order in which values become known for the order of events. An outcome reported a month late
would count as the newest value, and three of them would prove a shift of level. If it had been reported in
time, it would have been forgotten by now. So it is not learned. The count is of runs that started after the
end of this run: neither a long run, nor runs side by side that are reported in any order, come late.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

ENOUGH = 20  # later runs: the quick levels and the short windows have forgotten an older value


@dataclass(slots=True)
class LaterRuns:
    """The starts of the newest ``ENOUGH`` runs whose values are known."""

    _starts: list[float] = field(default_factory=list, init=False)  # a heap

    def supersede(self, ended_at_seconds: float) -> bool:
        """Return whether enough known runs started after *ended_at_seconds*, the end of another run."""
        return len(self._starts) == ENOUGH and ended_at_seconds < self._starts[0]

    def add(self, started_at_seconds: float) -> None:
        """Add a run whose value is known now."""
        if len(self._starts) < ENOUGH:
            heapq.heappush(self._starts, started_at_seconds)
        else:
            heapq.heappushpop(self._starts, started_at_seconds)
