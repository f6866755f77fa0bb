"""The ranges of history that a chart can show: the newest runs, or a number of hours or days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.models import Run
from monitor.models.run import ENDED

if TYPE_CHECKING:
    from monitor.models import Series


@dataclass(frozen=True)
class ChartRange:
    """Either the *newest* runs, or the runs whose slot lies within *span*; long ranges are drawn *by_day*."""

    key: str
    label: str
    newest: int | None = None
    span: timedelta | None = None
    by_day: bool = False


RANGES = (
    ChartRange("50", "last 50", newest=50),
    ChartRange("200", "last 200", newest=200),
    ChartRange("1000", "last 1000", newest=1000),
    ChartRange("1h", "1 hour", span=timedelta(hours=1)),
    ChartRange("24h", "24 hours", span=timedelta(hours=24)),
    ChartRange("7d", "7 days", span=timedelta(days=7)),
    ChartRange("30d", "30 days", span=timedelta(days=30)),
    ChartRange("90d", "90 days", span=timedelta(days=90), by_day=True),
    ChartRange("1y", "1 year", span=timedelta(days=365), by_day=True),
    ChartRange("2y", "2 years", span=timedelta(days=730), by_day=True),
)
DEFAULT = RANGES[0]


def named(key: str) -> ChartRange:
    """Return the range called *key*; the default for an unknown key, so that old links keep working."""
    return next((each for each in RANGES if each.key == key), DEFAULT)


def begin(series: Series, chosen: ChartRange, now: datetime) -> datetime | None:
    """Return the earliest slot of *chosen*; None if *chosen* covers the whole history."""
    if chosen.span is not None:
        return now - chosen.span
    if chosen.newest is None:
        return None
    ended = (
        Run.objects.filter(series=series, state__in=ENDED).order_by("-slot").values_list("slot", flat=True)
    )
    return ended[chosen.newest - 1 : chosen.newest].first()


def ended_runs(series: Series, chosen: ChartRange, now: datetime, *, at_most: int) -> tuple[list[Run], bool]:
    """Return the ended runs of *series* in *chosen*, oldest first, and whether runs were left out.

    At most *at_most* runs are returned; if there are more, the oldest are left out.
    """
    ended = Run.objects.filter(series=series, state__in=ENDED).order_by("-slot")
    if chosen.span is not None:
        ended = ended.filter(slot__gte=now - chosen.span)
    wanted = at_most if chosen.newest is None else min(at_most, chosen.newest)
    runs = list(ended[: wanted + 1])
    is_cut = len(runs) > wanted and chosen.newest != wanted
    return runs[:wanted][::-1], is_cut
