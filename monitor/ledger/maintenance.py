"""Planned work: what goes on at a time, and what comes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.ledger.admission import OpenWindow
from monitor.ledger.maintenance_times import Occurrence, WindowTimes, next_after, open_at
from monitor.models import Binding, MaintenanceWindow, Series, Site
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.maintenance_window import MaintenanceWindowQuerySet

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShownWindow:
    """A blackout with its window that is open, or else the next; of its sites those that may be told."""

    blackout: MaintenanceWindow
    window: Occurrence
    is_open: bool
    is_everywhere: bool
    sites: Sequence[str]

    @property
    def where(self) -> str:
        return "everywhere" if self.is_everywhere else ", ".join(self.sites)

    @property
    def words(self) -> str:
        """While it is open: ``in maintenance until 2026-03-01 13:00 UTC: new disks``."""
        return f"in maintenance until {self.window.ends_at:%Y-%m-%d %H:%M} UTC: {self.blackout}"

    def covers(self, sites: Collection[str]) -> bool:
        return self.is_everywhere or any(site in sites for site in self.sites)


def open_windows(now: datetime) -> tuple[OpenWindow, ...]:
    """Those that are open at *now*. Work whose schedule cannot be read is left out, and logged."""
    return tuple(
        OpenWindow(str(one), span.starts_at, span.ends_at, frozenset(_sites(one)))
        for one, span in _open(MaintenanceWindow.objects.all(), now)
    )


def open_for_user(user: AbstractBaseUser | AnonymousUser, now: datetime) -> list[ShownWindow]:
    """What *user* may know of and goes on at *now*; what began first comes first."""
    found = list(_open(MaintenanceWindow.objects.visible_to(user), now))
    shown = _sites_for(user) if found else ()
    return _in_order(_work(one, span, shown, is_open=True) for one, span in found)


def open_for_series(series: Series, now: datetime) -> list[ShownWindow]:
    """What goes on at *now* at sites of *series*; other sites are not told."""
    found = list(_open(MaintenanceWindow.objects.all(), now))
    bound = Binding.objects.filter(series=series).order_by() if found else Binding.objects.none()
    shown = set(bound.values_list("resource__site__name", flat=True))
    works = (_work(one, span, shown, is_open=True) for one, span in found)
    return _in_order(work for work in works if work.covers(shown))


def open_and_planned(user: AbstractBaseUser | AnonymousUser, now: datetime) -> list[ShownWindow]:
    """What *user* may know of: what goes on at *now*, then what comes, the next first."""
    shown, found = _sites_for(user), []
    for one in MaintenanceWindow.objects.visible_to(user).not_over(now).prefetch_related("sites"):
        current = _read(open_at, one, now)
        window = current or _read(next_after, one, now)
        if window is not None:
            found.append(_work(one, window, shown, is_open=current is not None))
    return _in_order(found)


def _open(
    blackouts: MaintenanceWindowQuerySet, now: datetime
) -> Iterator[tuple[MaintenanceWindow, Occurrence]]:
    for one in blackouts.begun(now).prefetch_related("sites"):
        span = _read(open_at, one, now)
        if span is not None:
            yield one, span


def _read(
    asked: Callable[[WindowTimes, datetime], Occurrence | None], blackout: MaintenanceWindow, now: datetime
) -> Occurrence | None:
    times = WindowTimes(
        blackout.starts_at,
        blackout.ends_at,
        blackout.schedule,
        blackout.timezone,
        blackout.duration_seconds,
    )
    try:
        return asked(times, now)
    except InvalidSchedule as error:
        logger.error("maintenance %s is not kept to: %s", blackout.name, error)
        return None


def _work(
    blackout: MaintenanceWindow, window: Occurrence, shown: Collection[str], *, is_open: bool
) -> ShownWindow:
    sites = _sites(blackout)
    return ShownWindow(blackout, window, is_open, not sites, [site for site in sites if site in shown])


def _in_order(works: Iterable[ShownWindow]) -> list[ShownWindow]:
    return sorted(works, key=lambda work: (work.window.starts_at, work.blackout.name))


def _sites(blackout: MaintenanceWindow) -> list[str]:
    return [site.name for site in blackout.sites.all()]


def _sites_for(user: AbstractBaseUser | AnonymousUser) -> set[str]:
    if getattr(user, "is_superuser", False):
        return set(Site.objects.values_list("name", flat=True))
    bound = Binding.objects.filter(series__in=Series.objects.visible_to(user)).order_by()
    return set(bound.values_list("resource__site__name", flat=True))
