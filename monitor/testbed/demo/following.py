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
    return f"{head} {run.seconds:7.2f} s  {_next(run)}".rstrip()


def _next(run: Run) -> str:
    latest = Forecast.objects.filter(metric__series=run.series_id, metric__name="total.seconds").first()
    if latest is None:
        return ""
    return f"next: {latest.mean:.1f} s ({latest.lower:.1f} to {latest.upper:.1f}, {latest.level:.0%})"
