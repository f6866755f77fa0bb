"""Reports that cannot be written now, on a full disk or without a process that writes them: tried again.

They are in memory: what cannot be written has no other place. The newest are kept, and the others counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from reporters.config import Assignment
from reporters.remote.agent.admission import SiteRun

MOST = 1000


@dataclass(frozen=True)
class UnreportedRun:
    """A run that has ended or did not take place; its report will have *outcome* and *reason*."""

    run: SiteRun
    assignment: Assignment
    outcome: str
    reason: str


class UnreportedRuns:
    """At most ``MOST`` runs without a report.

    Attributes:
        given_up: how many runs, beyond these, get no report.
    """

    def __init__(self) -> None:
        self._runs: deque[UnreportedRun] = deque()
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: UnreportedRun) -> None:
        self._runs.append(run)
        if len(self._runs) > MOST:
            self._runs.popleft()
            self.given_up += 1

    def take(self, most: int) -> list[UnreportedRun]:
        """Remove and return the *most* oldest runs, or as many as there are."""
        return [self._runs.popleft() for _ in range(min(most, len(self._runs)))]
