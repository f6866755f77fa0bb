"""Run all series together a number of times, back to back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from monitor.models import Run, Series
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.holds import RunHeld
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.dispatch import dispatch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence
    from datetime import datetime


class Rounds:
    """Requests *count* runs of each series: a round begins when all runs of the round before have ended.

    So a slow application meets a probe that has run as often. A held series is left out until it is resumed.

    Attributes:
        requested: the name of the series of each requested run.
        held: by name of the series, why runs of it are still missing.
    """

    def __init__(self, series: Sequence[Series], count: int) -> None:
        self._series = series
        self._count = count
        self.requested: dict[uuid.UUID, str] = {}
        self.held: dict[str, str] = {}

    def advance(self, now: datetime) -> bool:
        """Request the runs that can start now; return whether all rounds have ended, but for held series.

        If no run was requested, no run is claimed: the tick and the ends of runs claim the other runs.
        """
        if self._is_busy(now):
            return False
        counts = Counter(self.requested.values())
        self.held, started = {}, False
        for series in self._series:
            if counts[series.name] == self._count:
                continue
            try:
                run = run_now(series, who=f"round {counts[series.name] + 1} of {self._count}", now=now)
            except RunHeld as error:
                self.held[series.name] = str(error)
                continue
            self.requested[run.pk] = series.name
            started = True
        if started:
            dispatch(claim_due(now))
        return not started

    def _is_busy(self, now: datetime) -> bool:
        """Return whether a run is pending, which may be left from an earlier demo."""
        return Run.objects.filter(series__in=self._series, slot__lte=now).pending().runnable().exists()
