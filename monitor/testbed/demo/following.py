"""Follow what runs end, as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.models import Forecast, Run
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid
    from datetime import datetime


class Follower:
    """Finds every run once, when it has ended; *since* is the slot from which on it looks."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._seen: set[uuid.UUID] = set()

    def news(self) -> list[Run]:
        """The runs that have ended since the last call, oldest first."""
        ended = Run.objects.ended().filter(slot__gte=self._since).select_related("series")
        fresh = [run for run in ended.order_by("ended_at", "slot") if run.pk not in self._seen]
        self._seen.update(run.pk for run in fresh)
        return fresh


def line(run: Run) -> str:
    """One line about a run: when, what, how it ended, how long it took or why not."""
    at = run.ended_at or run.slot
    head = f"{at:%H:%M:%S}  {run.series.name:<14} {run.state:<9}"
    if run.state != State.PASSED:
        return f"{head} {run.reason}"
    return f"{head} {run.seconds:7.2f} s  {_expected(run)}".rstrip()


def _expected(run: Run) -> str:
    """What was forecast for this run before it began."""
    before = Forecast.objects.filter(metric__series=run.series_id, metric__name="total.seconds")
    last = before.filter(issued_at__lte=run.started_at).first()
    if last is None:
        return ""
    return f"forecast {last.mean:.1f} s ({last.lower:.1f} to {last.upper:.1f}, {last.level:.0%})"
