"""Follow what runs end, as they end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Min
from django.utils import timezone

from monitor.forecasts.defaults import METHOD
from monitor.models import Forecast, Metric, Run
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid

JUST_ASKED = timedelta(minutes=1)  # a run whose slot is as young may not be in the ledger yet


class Follower:
    """Finds every run once, when it has ended; *since* is the slot from which on it looks."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._seen: set[uuid.UUID] = set()

    def news(self) -> list[str]:
        """A line for every run that has ended since the last call, oldest first.

        Raises:
            DatabaseError: the depot is away; the next call tells what this one could not.
        """
        since = self._next_since(timezone.now())
        ended = Run.objects.ended().filter(slot__gte=self._since).select_related("series")
        found = list(ended.order_by("ended_at", "slot"))
        told = [line(run) for run in found if run.pk not in self._seen]
        self._seen = {run.pk for run in found}
        self._since = since
        return told

    def _next_since(self, now: datetime) -> datetime:
        """Nothing that has not ended is older. A demo may run for weeks, and asks four times a second."""
        pending = Run.objects.pending().filter(slot__gte=self._since).aggregate(oldest=Min("slot"))
        return max(self._since, min(pending["oldest"] or now, now - JUST_ASKED))


def line(run: Run) -> str:
    """One line about a run: when, what, how it ended, how long it took or why not."""
    at = run.ended_at or run.slot
    head = f"{at:%H:%M:%S}  {run.series.name:<14} {run.state:<9}"
    if run.state != State.PASSED:
        return f"{head} {run.reason}"
    return f"{head} {run.seconds:7.2f} s  {_expected(run)}".rstrip()


def _expected(run: Run) -> str:
    """What was forecast for this run before it began, of the segment that it is of."""
    totals = Metric.objects.filter(
        segment__series=run.series_id, name="total.seconds", samples__time=run.slot
    )
    before = Forecast.objects.filter(metric__in=totals)
    last = before.filter(method=METHOD, at=None, issued_at__lte=run.started_at).first()
    if last is None:
        return ""
    return f"forecast {last.median:.1f} s ({last.lower:.1f} to {last.upper:.1f}, {last.level:.0%})"
