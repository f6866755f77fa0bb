"""Run every series a number of times, as fast as they go."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from monitor.ledger.claim import claim_due
from monitor.ledger.run_now import run_now
from monitor.models import Run, Series
from monitor.worker.dispatch import dispatch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime


class Rounds:
    """Asks for the next round of a series as soon as its last has ended, until each had *count*."""

    def __init__(self, series: Sequence[Series], count: int) -> None:
        self._series = series
        self._count = count
        self.asked: dict[uuid.UUID, str] = {}  # run -> series

    def advance(self, now: datetime) -> bool:
        """Ask for what can start now; True when every run that was to be asked for has ended."""
        waiting = self._busy(now)
        had = Counter(self.asked.values())
        for one in self._series:
            if one.name not in waiting and had[one.name] < self._count:
                run = run_now(one, who=f"round {had[one.name] + 1} of {self._count}", now=now)
                self.asked[run.pk] = one.name
                waiting.add(one.name)
        dispatch(claim_due(now))
        return not waiting

    def _busy(self, now: datetime) -> set[str]:
        """The series with a run under way, or about to be: ours, or what an earlier demo has left."""
        pending = Run.objects.filter(series__in=self._series, slot__lte=now).pending().runnable()
        return set(pending.values_list("series__name", flat=True))
