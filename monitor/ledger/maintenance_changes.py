"""Record changes of maintenance windows, and declare windows after the fact."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.models import MaintenanceChange, MaintenanceWindow
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.models.maintenance_change import MaintenanceAction

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models import Site

DECLARED = "declared"  # the source of windows that are declared after the fact


class MaintenanceError(Exception):
    """A change of maintenance windows is refused. The message tells the user why."""


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


def describe_window(window: MaintenanceWindow, sites: Collection[str]) -> str:
    """Return title, times and sites: ``New disks: 2026-03-01 08:00 to 2026-03-02 08:00 UTC at sdsc``."""
    if window.starts_at is None or window.ends_at is None:
        raise ValueError("expected a window that occurs once")
    times = f"{window.starts_at:%Y-%m-%d %H:%M} to {window.ends_at:%Y-%m-%d %H:%M} UTC"
    return f"{window}: {times} at {', '.join(sorted(sites))}"


@transaction.atomic
def declare(
    name: str, site: Site, starts_at: datetime, ends_at: datetime, reason: Reason
) -> MaintenanceWindow:
    """Create a window that is over, with a record of the change.

    ``monitor.availability.declare`` also recomputes the availability of the site.

    Raises:
        MaintenanceError: the window is not over, has no duration or reason, or the name exists.
    """
    if not reason.why.strip():
        raise MaintenanceError("expected a reason")
    if len(reason.why) > MAX_REASON_CHARACTERS:
        raise MaintenanceError(f"expected a reason of at most {MAX_REASON_CHARACTERS} characters")
    if starts_at >= ends_at:
        raise MaintenanceError("expected an end after the start")
    if ends_at > reason.at:
        raise MaintenanceError(
            f"the window ends at {ends_at.isoformat()}, in the future: announce it in a grid file or a feed"
        )
    window = MaintenanceWindow(
        name=name,
        title=reason.why.strip()[:200],
        starts_at=starts_at,
        ends_at=ends_at,
        source=DECLARED,
        uid=name,
    )
    lock_until_commit(AdvisoryLock.GRID_FILE)
    if MaintenanceWindow.objects.filter(name=name).exists():
        raise MaintenanceError(f"there is a maintenance window {name!r} already")
    window.save()
    window.sites.add(site)
    reason.change(window, MaintenanceAction.DECLARED, after=describe_window(window, [site.name])).save()
    return window
