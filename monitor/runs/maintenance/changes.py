"""Record changes of maintenance windows, and declare windows after the fact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.access.audit_trail import note
from monitor.models import MaintenanceChange, MaintenanceWindow
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.models.maintenance_change import MaintenanceAction
from monitor.models.natural_order import sort_name

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models import Site

_BATCH = 1000
DECLARED = "declared"  # the source of windows that are declared after the fact


class MaintenanceError(Exception):
    """A change of maintenance windows is refused. The message tells the user why.

    WindowExists      another window has the name
    UnsuitableState   the window is over, not open or already open: the change is not possible now
    ForeignWindow     a feed announces the window, or it was declared: it is not changed here
    NotPermitted      the user may not manage all sites of the window
    """


class WindowExists(MaintenanceError):
    pass


class UnsuitableState(MaintenanceError):
    pass


class ForeignWindow(MaintenanceError):
    pass


class NotPermitted(MaintenanceError):
    pass


@dataclass(frozen=True)
class Reason:
    """Who changes windows, when and why."""

    who: str
    why: str
    at: datetime

    def change(
        self, window: MaintenanceWindow, action: MaintenanceAction, *, before: str = "", after: str = ""
    ) -> MaintenanceChange:
        return MaintenanceChange(
            window=window.name,
            source=window.source,
            action=action,
            at=self.at,
            who=self.who[:200],
            before=before,
            after=after,
            why=self.why[:MAX_REASON_CHARACTERS],
        )


def store(changes: Sequence[MaintenanceChange]) -> None:
    """Store *changes*, and note them for the audit record."""
    MaintenanceChange.objects.bulk_create(changes, batch_size=_BATCH)
    for change in changes:
        note("maintenance", change.window, before=change.before or None, after=change.after or None)


def describe_window(window: MaintenanceWindow, sites: Collection[str]) -> str:
    """Return title, times and sites: ``New disks: 2026-03-01 08:00 to 2026-03-02 08:00 UTC at sdsc``.

    No *sites* are every site.
    """
    return f"{window}: {_times(window)} at {', '.join(sorted(sites, key=sort_name)) or 'every site'}"


def _times(window: MaintenanceWindow) -> str:
    if window.schedule:
        ends = f" until {window.ends_at:%Y-%m-%d %H:%M} UTC" if window.ends_at else ""
        return f"{window.schedule} ({window.timezone}) for {window.duration_seconds} s{ends}"
    return f"{window.starts_at:%Y-%m-%d %H:%M} to {window.ends_at:%Y-%m-%d %H:%M} UTC"


def check_reason(reason: Reason) -> None:
    """Raise MaintenanceError unless *reason* says why, on few characters."""
    if not reason.why.strip():
        raise MaintenanceError("expected a reason")
    if len(reason.why) > MAX_REASON_CHARACTERS:
        raise MaintenanceError(f"expected a reason of at most {MAX_REASON_CHARACTERS} characters")


@transaction.atomic
def declare(
    name: str,
    sites: Sequence[Site],
    starts_at: datetime,
    ends_at: datetime,
    reason: Reason,
    *,
    title: str = "",
) -> MaintenanceWindow:
    """Create a window at *sites* that is over, with a record of the change; its *title* may be its reason.

    ``monitor.analysis.availability.declare`` also recomputes the availability of the sites.

    Raises:
        MaintenanceError: the window is not over, has no duration, site or reason, or the name exists.
    """
    check_reason(reason)
    if not sites:
        raise MaintenanceError("expected the sites of a window that is over")
    if starts_at >= ends_at:
        raise MaintenanceError("expected an end after the start")
    if ends_at > reason.at:
        raise MaintenanceError(
            f"the window ends at {ends_at.isoformat()}, in the future: announce it in a grid file or a feed"
        )
    window = MaintenanceWindow(
        name=name,
        title=title or reason.why.strip()[:200],
        starts_at=starts_at,
        ends_at=ends_at,
        source=DECLARED,
        uid=name,
    )
    lock_until_commit(AdvisoryLock.GRID_FILE)
    check_new_name(name)
    window.save()
    window.sites.set(sites)
    after = describe_window(window, [site.name for site in sites])
    store([reason.change(window, MaintenanceAction.DECLARED, after=after)])
    return window


def check_new_name(name: str) -> None:
    """Raise WindowExists if a window has this *name*."""
    if MaintenanceWindow.objects.filter(name=name).exists():
        raise WindowExists(f"there is a maintenance window {name!r} already")
