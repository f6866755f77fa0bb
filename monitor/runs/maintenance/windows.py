"""Find the maintenance windows that are open or planned."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Max, Prefetch, Q

from monitor.models import Binding, MaintenanceWindow, Series, Site
from monitor.models.visibility import sees_all
from monitor.runs.maintenance.times import (
    YEAR,
    Occurrence,
    OpenWindow,
    WindowTimes,
    end_before,
    next_after,
    occurrences,
    open_at,
)
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.maintenance_window import MaintenanceWindowQuerySet

logger = logging.getLogger(__name__)
_SITES = Prefetch("sites", Site.objects.only("name"))  # a window may be at hundreds


@dataclass(frozen=True)
class ShownWindow:
    """A maintenance window as a user sees it.

    Attributes:
        occurrence: the open occurrence if *is_open*, else the next one.
        is_everywhere: whether the window is at every site.
        sites: the names of the sites that the user may see.
    """

    window: MaintenanceWindow
    occurrence: Occurrence
    is_open: bool
    is_everywhere: bool
    sites: Sequence[str]

    @property
    def where(self) -> str:
        return "everywhere" if self.is_everywhere else ", ".join(self.sites)

    @property
    def words(self) -> str:
        """The notice while the window is open: ``in maintenance until 2026-03-01 13:00 UTC: new disks``."""
        return f"in maintenance until {self.occurrence.ends_at:%Y-%m-%d %H:%M} UTC: {self.window}"

    def covers(self, sites: Collection[str]) -> bool:
        return self.is_everywhere or any(site in sites for site in self.sites)


def open_windows(now: datetime) -> tuple[OpenWindow, ...]:
    """Return the windows that are open at *now*. A window with an invalid schedule is logged and left out."""
    return tuple(
        OpenWindow(str(window), occurrence.starts_at, occurrence.ends_at, frozenset(_sites(window)))
        for window, occurrence in _open(MaintenanceWindow.objects.all(), now)
    )


def planned_windows(
    since: datetime, until: datetime, at_sites: Collection[str] | None = None
) -> Iterator[OpenWindow]:
    """Yield the windows that are open at some time in [*since*, *until*); *at_sites* only, if given.

    A window with an invalid schedule is logged and left out.
    """
    windows = MaintenanceWindow.objects.not_over(since).exclude(schedule="", starts_at__gte=until)
    if at_sites is not None:
        windows = windows.filter(Q(sites=None) | Q(sites__name__in=at_sites)).distinct()
    for window in windows.prefetch_related(_SITES):
        sites = frozenset(_sites(window))
        try:
            for occurrence in occurrences(times_of(window), since, until):
                yield OpenWindow(str(window), occurrence.starts_at, occurrence.ends_at, sites)
        except InvalidSchedule as error:
            logger.error("maintenance window %s is ignored: %s", window.name, error)


def last_ends(sites: Iterable[str], now: datetime) -> dict[str, datetime]:
    """Return when maintenance at each of *sites* (names) ended last before *now*; at most a year back.

    Sites without maintenance in this year are absent.
    """
    names = set(sites)
    ends: dict[str, datetime] = {}
    for at_sites, end in _last_ends(names, now):
        for name in names & at_sites if at_sites else names:
            ends[name] = max(end, ends.get(name, end))
    return ends


def _last_ends(names: Collection[str], now: datetime) -> Iterator[tuple[frozenset[str], datetime]]:
    """Yield sites (empty: every site), and when maintenance there ended last before *now*.

    Recurring windows may have other sites than *names*, too.
    """
    is_there = Q(sites=None) | Q(sites__name__in=names)
    single = MaintenanceWindow.objects.filter(is_there, schedule="", ends_at__gt=now - YEAR, ends_at__lte=now)
    for site, end in single.order_by().values_list("sites__name").annotate(end=Max("ends_at")):
        yield frozenset([site] if site else []), end
    recurring = MaintenanceWindow.objects.exclude(schedule="").prefetch_related(_SITES)
    for window in recurring:
        try:
            end = end_before(times_of(window), now)
        except InvalidSchedule as error:
            logger.error("maintenance window %s is ignored: %s", window.name, error)
            continue
        if end is not None:
            yield frozenset(_sites(window)), end


def open_for_user(user: AbstractBaseUser | AnonymousUser, now: datetime) -> list[ShownWindow]:
    """Return the open windows that *user* may see, sorted by start."""
    windows = list(_open(MaintenanceWindow.objects.all(), now))
    sites = _visible_sites(user, [window for window, _ in windows])
    shown = (_shown(window, occurrence, sites, is_open=True) for window, occurrence in windows)
    return _by_start(window for window in shown if _is_visible(user, window))


def open_for_series(series: Series, now: datetime) -> list[ShownWindow]:
    """Return the open windows at sites of *series*, sorted by start; each names only sites of *series*."""
    windows = list(_open(MaintenanceWindow.objects.all(), now))
    bindings = Binding.objects.filter(series=series).order_by() if windows else Binding.objects.none()
    sites = set(bindings.values_list("resource__site__name", flat=True))
    shown = (_shown(window, occurrence, sites, is_open=True) for window, occurrence in windows)
    return _by_start(window for window in shown if window.covers(sites))


def open_and_planned(
    user: AbstractBaseUser | AnonymousUser, now: datetime, site: Site | None = None
) -> list[ShownWindow]:
    """Return the windows that *user* may see, if they are open or have a next occurrence, sorted by start.

    With *site*, only those that cover it.
    """
    windows = MaintenanceWindow.objects.not_over(now)
    windows = windows.at_site(site) if site else windows
    planned = list(windows.prefetch_related(_SITES))
    sites = _visible_sites(user, planned)
    shown = []
    for window in planned:
        current = occurrence_of(open_at, window, now)
        occurrence = current or occurrence_of(next_after, window, now)
        if occurrence is not None:
            shown.append(_shown(window, occurrence, sites, is_open=current is not None))
    return _by_start(window for window in shown if _is_visible(user, window))


def _is_visible(user: AbstractBaseUser | AnonymousUser, shown: ShownWindow) -> bool:
    """Return whether the window is among ``MaintenanceWindow.objects.visible_to(user)``.

    Its visible sites are known already: the database would look for them a second time.
    """
    return user.is_authenticated and user.is_active and (shown.is_everywhere or bool(shown.sites))


def _open(
    windows: MaintenanceWindowQuerySet, now: datetime
) -> Iterator[tuple[MaintenanceWindow, Occurrence]]:
    for window in windows.may_be_open(now).prefetch_related(_SITES):
        occurrence = occurrence_of(open_at, window, now)
        if occurrence is not None:
            yield window, occurrence


def occurrence_of(
    find: Callable[[WindowTimes, datetime], Occurrence | None], window: MaintenanceWindow, now: datetime
) -> Occurrence | None:
    """Return what *find* finds of *window* at *now*; None, and a line in the log, for an invalid schedule."""
    try:
        return find(times_of(window), now)
    except InvalidSchedule as error:
        logger.error("maintenance window %s is ignored: %s", window.name, error)
        return None


def times_of(window: MaintenanceWindow) -> WindowTimes:
    return WindowTimes(
        window.starts_at, window.ends_at, window.schedule, window.timezone, window.duration_seconds
    )


def _shown(
    window: MaintenanceWindow, occurrence: Occurrence, visible: Collection[str], *, is_open: bool
) -> ShownWindow:
    sites = _sites(window)
    return ShownWindow(window, occurrence, is_open, not sites, [site for site in sites if site in visible])


def _by_start(windows: Iterable[ShownWindow]) -> list[ShownWindow]:
    return sorted(windows, key=lambda shown: (shown.occurrence.starts_at, shown.window.sort_name))


def _sites(window: MaintenanceWindow) -> list[str]:
    return [site.name for site in window.sites.all()]


def visible_sites(user: AbstractBaseUser | AnonymousUser) -> set[str]:
    """Return the names of the sites that *user* may see."""
    return set(Site.objects.visible_to(user).values_list("name", flat=True))


def _visible_sites(user: AbstractBaseUser | AnonymousUser, windows: Iterable[MaintenanceWindow]) -> set[str]:
    """Return the names of the sites of *windows* that *user* may see."""
    names = {name for window in windows for name in _sites(window)}
    if sees_all(user):
        return names
    sites = Site.objects.visible_to(user).filter(name__in=names)
    return set(sites.values_list("name", flat=True))
