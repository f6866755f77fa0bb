"""Announce, change, end and withdraw maintenance windows, with a record of each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.models import MaintenanceWindow, Site
from monitor.models.maintenance_change import MaintenanceAction
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.natural_order import sort_name
from monitor.models.site import may_manage_everywhere
from monitor.runs.maintenance.changes import (
    DECLARED,
    ForeignWindow,
    MaintenanceError,
    NotPermitted,
    Reason,
    UnsuitableState,
    check_new_name,
    check_reason,
    describe_window,
    store,
)
from monitor.runs.maintenance.times import WindowTimes, time_errors
from monitor.runs.maintenance.windows import times_of

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


@dataclass(frozen=True)
class Announcement:
    """What is announced of a window: its *title*, its *sites* (empty: every site), and its *times*."""

    title: str
    sites: Sequence[Site]
    times: WindowTimes

    @classmethod
    def of(cls, window: MaintenanceWindow) -> Announcement:
        return cls(window.title, list(window.sites.all()), times_of(window))

    def is_over(self, now: datetime) -> bool:
        """Return whether the window occurs once, and ends before *now*."""
        return not self.times.schedule and self.times.ends_at is not None and self.times.ends_at <= now


def check_may_announce(sites: Sequence[Site], user: AbstractBaseUser | AnonymousUser) -> None:
    """Raise NotPermitted unless *user* may manage windows at each of *sites* (empty: at every site)."""
    if not sites and not may_manage_everywhere(user, CHANGE_WINDOWS):
        raise NotPermitted("you may not announce maintenance at every site: name sites")
    own = Site.objects.manageable_by(user, CHANGE_WINDOWS).filter(pk__in=[site.pk for site in sites])
    names = {site.name for site in sites} - set(own.values_list("name", flat=True))
    if names:
        raise NotPermitted(f"you may not change maintenance at {', '.join(sorted(names, key=sort_name))}")


@transaction.atomic
def announce(name: str, announcement: Announcement, reason: Reason) -> MaintenanceWindow:
    """Create a window that is not over (``monitor.analysis.availability.declare`` has the others).

    Raises:
        MaintenanceError: the times are invalid, there is no reason, or the name exists.
    """
    check_reason(reason)
    _check_times(announcement.times)
    if announcement.times.ends_at is not None and announcement.times.ends_at <= reason.at:
        raise MaintenanceError("ends_at: expected a time in the future for a window with a schedule")
    lock_until_commit(AdvisoryLock.GRID_FILE)
    check_new_name(name)
    window = MaintenanceWindow(name=name)
    _write(window, announcement)
    store([reason.change(window, MaintenanceAction.ADDED, after=_described(window))])
    return window


@transaction.atomic
def change(name: str, announcement: Announcement, reason: Reason) -> MaintenanceWindow:
    """Replace what is announced of the window *name*. An open window keeps its start.

    Raises:
        MaintenanceError: the window or the announcement is over, or the times are invalid.
    """
    check_reason(reason)
    _check_times(announcement.times)
    window = _locked(name)
    before, old = _described(window), Announcement.of(window)
    _check_configured(window)
    if old.is_over(reason.at):
        raise UnsuitableState(f"the maintenance window {name!r} is over")
    if announcement.is_over(reason.at):
        raise MaintenanceError("ends_at: expected a time in the future; to end the window now, end it")
    if _has_begun(old.times, reason.at) and announcement.times.starts_at != old.times.starts_at:
        raise UnsuitableState(f"the maintenance window {name!r} has begun: its start cannot change")
    _write(window, announcement)
    store([reason.change(window, MaintenanceAction.CHANGED, before=before, after=_described(window))])
    return window


@transaction.atomic
def end(name: str, reason: Reason) -> MaintenanceWindow:
    """End the open window *name* now. Of a recurring window, no further one starts; an open one goes on.

    Raises:
        MaintenanceError: the window is over or has not begun.
    """
    check_reason(reason)
    window = _locked(name)
    before = _described(window)
    _check_configured(window)
    if window.ends_at is not None and window.ends_at <= reason.at:
        raise UnsuitableState(f"the maintenance window {name!r} is over")
    if window.starts_at is not None and window.starts_at >= reason.at:
        raise UnsuitableState(f"the maintenance window {name!r} has not begun: delete it instead")
    window.ends_at = reason.at
    window.save()
    store([reason.change(window, MaintenanceAction.SHORTENED, before=before, after=_described(window))])
    return window


@transaction.atomic
def withdraw(window: MaintenanceWindow, reason: Reason) -> None:
    """Delete *window*, also one that is over or was declared.

    Raises:
        ForeignWindow: a feed announces the window, and would announce it again.
        MaintenanceError: there is no reason, or the window exists no more.
    """
    check_reason(reason)
    found = _locked(window.name)
    if found.source != DECLARED:
        _check_configured(found)
    store([reason.change(found, MaintenanceAction.REMOVED, before=_described(found))])
    found.delete()


def _locked(name: str) -> MaintenanceWindow:
    lock_until_commit(AdvisoryLock.GRID_FILE)
    window = MaintenanceWindow.objects.filter(name=name).first()
    if window is None:
        raise UnsuitableState(f"there is no maintenance window {name!r} any more")
    return window


def _check_configured(window: MaintenanceWindow) -> None:
    if window.source == DECLARED:
        raise ForeignWindow(f"the maintenance window {window.name!r} was declared after the fact: delete it")
    if window.source:
        raise ForeignWindow(
            f"the feed {window.source!r} announces the maintenance window {window.name!r}: change it there"
        )


def _check_times(times: WindowTimes) -> None:
    errors = [f"{field}: {message}" for field, message in time_errors(times)]
    if errors:
        raise MaintenanceError("; ".join(errors))


def _has_begun(times: WindowTimes, now: datetime) -> bool:
    return not times.schedule and times.starts_at is not None and times.starts_at <= now


def _write(window: MaintenanceWindow, announcement: Announcement) -> None:
    times = announcement.times
    window.title, window.starts_at, window.ends_at = announcement.title, times.starts_at, times.ends_at
    window.schedule, window.timezone = times.schedule, times.timezone
    window.duration_seconds = times.duration_seconds
    window.save()
    window.sites.set(announcement.sites)


def _described(window: MaintenanceWindow) -> str:
    return describe_window(window, [site.name for site in window.sites.all()])
