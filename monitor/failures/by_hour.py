"""The share of failed runs by weekday and hour of the day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from django.db.models import Count, Q
from django.db.models.functions import ExtractHour, ExtractIsoWeekDay

from monitor.models.run import WITH_SIGNATURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.models.run import RunQuerySet

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class HourCount:
    """The *runs* in an hour of a weekday, and how many of them *failed*."""

    runs: int = 0
    failed: int = 0

    @property
    def share(self) -> float | None:
        """The share that failed; None without runs."""
        return self.failed / self.runs if self.runs else None


def count_by_hour(judged: RunQuerySet, zone: tzinfo = UTC) -> Sequence[Sequence[HourCount]]:
    """Return the counts of *judged* runs by weekday, Monday first, and hour of their slots in *zone*."""
    rows = (
        judged.order_by()
        .annotate(weekday=ExtractIsoWeekDay("slot", tzinfo=zone), hour=ExtractHour("slot", tzinfo=zone))
        .values_list("weekday", "hour")
        .annotate(runs=Count("*"), failed=Count("pk", filter=Q(state__in=WITH_SIGNATURE)))
    )
    counts = {(weekday, hour): HourCount(runs, failed) for weekday, hour, runs, failed in rows}
    return [[counts.get((weekday, hour), HourCount()) for hour in range(24)] for weekday in range(1, 8)]
