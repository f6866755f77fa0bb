"""Report runs of the demo as they end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Min
from django.utils import timezone

from monitor.analysis.forecasts.defaults import METHOD
from monitor.models import Forecast, Metric, Run
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid

LEDGER_DELAY = timedelta(minutes=1)  # younger slots may not be in the ledger yet


class EndedRuns:
    """Reports each run whose slot is at or after *since* exactly once, after the end of the run."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._reported: set[uuid.UUID] = set()

    def new_lines(self) -> list[str]:
        """Return a line for each run that has ended since the last call, oldest first.

        Raises:
            DatabaseError: the depot is unavailable; the next call returns the lines that this call lost.
        """
        since = self._next_since(timezone.now())
        ended = Run.objects.ended().filter(slot__gte=self._since).select_related("series")
        runs = list(ended.order_by("ended_at", "slot"))
        lines = [line(run) for run in runs if run.pk not in self._reported]
        self._reported = {run.pk for run in runs}
        self._since = since
        return lines

    def _next_since(self, now: datetime) -> datetime:
        """Return the oldest slot whose run can still end, so that a poll reads few runs even after weeks."""
        pending = Run.objects.pending().filter(slot__gte=self._since).aggregate(oldest=Min("slot"))
        return max(self._since, min(pending["oldest"] or now, now - LEDGER_DELAY))


def line(run: Run) -> str:
    """Return one line of text about an ended run: time, series, outcome, and duration or reason."""
    at = run.ended_at or run.slot
    head = f"{at:%H:%M:%S}  {run.series.name:<14} {run.state:<9}"
    if run.state != State.PASSED:
        return f"{head} {run.reason}"
    return f"{head} {run.seconds:7.2f} s  {_expected(run)}".rstrip()


def _expected(run: Run) -> str:
    """Return the text of the segment's last forecast before the run began; empty without a forecast."""
    totals = Metric.objects.filter(
        segment__series=run.series_id, name="total.seconds", samples__time=run.slot
    )
    earlier = Forecast.objects.filter(metric__in=totals)
    last = earlier.filter(method=METHOD, at=None, issued_at__lte=run.started_at).first()
    if last is None:
        return ""
    return f"forecast {last.median:.1f} s ({last.lower:.1f} to {last.upper:.1f}, {last.level:.0%})"
