"""The stretches of history that a page can show: the newest so many runs, or the last so many hours, days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.models import Run
from monitor.models.run import ENDED

if TYPE_CHECKING:
    from monitor.models import Series


@dataclass(frozen=True)
class Stretch:
    """Either the *newest* so many runs, or those whose slot lies within *span*: too many for one mark each if
    it is drawn *by_day*."""

    key: str
    label: str
    newest: int | None = None
    span: timedelta | None = None
    by_day: bool = False


STRETCHES = (
    Stretch("50", "last 50", newest=50),
    Stretch("200", "last 200", newest=200),
    Stretch("1000", "last 1000", newest=1000),
    Stretch("1h", "1 hour", span=timedelta(hours=1)),
    Stretch("24h", "24 hours", span=timedelta(hours=24)),
    Stretch("7d", "7 days", span=timedelta(days=7)),
    Stretch("30d", "30 days", span=timedelta(days=30)),
    Stretch("90d", "90 days", span=timedelta(days=90), by_day=True),
    Stretch("1y", "1 year", span=timedelta(days=365), by_day=True),
    Stretch("2y", "2 years", span=timedelta(days=730), by_day=True),
)
DEFAULT = STRETCHES[0]


def named(key: str) -> Stretch:
    """The stretch of that *key*, or the default one: an old link still shows something."""
    return next((stretch for stretch in STRETCHES if stretch.key == key), DEFAULT)


def begin(series: Series, stretch: Stretch, now: datetime) -> datetime | None:
    """The earliest slot of *stretch*; None if it is all that there is."""
    if stretch.span is not None:
        return now - stretch.span
    if stretch.newest is None:
        return None
    ended = (
        Run.objects.filter(series=series, state__in=ENDED).order_by("-slot").values_list("slot", flat=True)
    )
    return ended[stretch.newest - 1 : stretch.newest].first()


def ended_runs(series: Series, stretch: Stretch, now: datetime, *, at_most: int) -> tuple[list[Run], bool]:
    """The runs of *series* in *stretch* that ended, oldest first, and whether older ones were left out
    because there are more than *at_most*."""
    ended = Run.objects.filter(series=series, state__in=ENDED).order_by("-slot")
    if stretch.span is not None:
        ended = ended.filter(slot__gte=now - stretch.span)
    wanted = at_most if stretch.newest is None else min(at_most, stretch.newest)
    found = list(ended[: wanted + 1])
    cut = len(found) > wanted and stretch.newest != wanted
    return found[:wanted][::-1], cut
