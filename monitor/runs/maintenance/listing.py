"""List maintenance windows with their states and occurrences, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from monitor.models.natural_order import sort_name
from monitor.runs.maintenance.times import Occurrence, next_after, occurrences, open_at
from monitor.runs.maintenance.windows import occurrence_of, times_of, visible_sites
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models import MaintenanceWindow
    from monitor.models.maintenance_window import MaintenanceWindowQuerySet

LONGEST_PERIOD = timedelta(days=400)  # in which occurrences are looked for
_LEAST_READ = 100  # windows in a batch


class MaintenanceState(StrEnum):
    """The state of a maintenance window."""

    OPEN = "open"
    PLANNED = "planned"
    OVER = "over"


@dataclass(frozen=True)
class ListedWindow:
    """A window as a user sees it.

    Attributes:
        occurrence: the open one, or else the next one; None if the window is over.
        sites: the names of the sites that the user may see; empty if the window is at every site.
    """

    window: MaintenanceWindow
    state: MaintenanceState
    occurrence: Occurrence | None
    is_everywhere: bool
    sites: Sequence[str]


@dataclass(frozen=True)
class WindowPeriod:
    """The time from *start* until before *end*, at most ``LONGEST_PERIOD``."""

    start: datetime
    end: datetime

    def contains_some_of(self, window: MaintenanceWindow) -> bool:
        """Return whether *window* is open at some time of the period."""
        try:
            return next(occurrences(times_of(window), self.start, self.end), None) is not None
        except InvalidSchedule:
            return False


def listed_windows(
    windows: MaintenanceWindowQuerySet,
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    *,
    after: str = "",
    at_most: int,
    state: MaintenanceState | None = None,
    period: WindowPeriod | None = None,
) -> list[ListedWindow]:
    """Return the first *at_most* of *windows* that *user* may see and whose names sort after *after*.

    Only windows in *state*, and open at some time of *period*, if these are given.
    """
    visible = windows.visible_to(user)
    if state in {MaintenanceState.OPEN, MaintenanceState.PLANNED}:
        visible = visible.not_over(now)
    sites, size = visible_sites(user), max(at_most, _LEAST_READ)
    listed: list[ListedWindow] = []
    while len(listed) < at_most:
        behind = visible.filter(sort_name__gt=sort_name(after)).order_by("sort_name")
        batch = list(behind.prefetch_related("sites")[:size])
        within = [window for window in batch if period is None or period.contains_some_of(window)]
        shown = [_listed(window, sites, now) for window in within]
        listed += [each for each in shown if state in {None, each.state}]
        if len(batch) < size:
            break
        after = batch[-1].name
    return listed[:at_most]


def listed_window(
    window: MaintenanceWindow, user: AbstractBaseUser | AnonymousUser, now: datetime
) -> ListedWindow:
    """Return *window* as *user* sees it."""
    return _listed(window, visible_sites(user), now)


def _listed(window: MaintenanceWindow, visible: Collection[str], now: datetime) -> ListedWindow:
    current = occurrence_of(open_at, window, now)
    occurrence = current or occurrence_of(next_after, window, now)
    state = MaintenanceState.OPEN if current else MaintenanceState.PLANNED
    sites = [site.name for site in window.sites.all()]
    return ListedWindow(
        window=window,
        state=state if occurrence else MaintenanceState.OVER,
        occurrence=occurrence,
        is_everywhere=not sites,
        sites=[name for name in sites if name in visible],
    )
