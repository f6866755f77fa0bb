"""Change maintenance of the past, and recompute the availability of its days: both or neither."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.analysis.availability.recompute import RecomputationRequest, recompute
from monitor.models import Site
from monitor.runs.maintenance.announcements import Announcement, announce, withdraw
from monitor.runs.maintenance.changes import Reason, declare

if TYPE_CHECKING:
    from monitor.models import MaintenanceWindow, Recomputation


def announce_or_declare(name: str, announcement: Announcement, reason: Reason) -> MaintenanceWindow:
    """Create the window *name*; without a title, it has that of the reason. Declare one that is over.

    Raises:
        MaintenanceError, InvalidRecomputation: the window is refused, or too long to be recomputed.
    """
    times, title = announcement.times, announcement.title or reason.why[:200]
    if announcement.is_over(reason.at) and times.starts_at and times.ends_at:
        window, _ = declare_and_recompute(
            name, announcement.sites, times.starts_at, times.ends_at, reason, title=title
        )
        return window
    return announce(name, Announcement(title, announcement.sites, times), reason)


@transaction.atomic
def declare_and_recompute(
    name: str,
    sites: Sequence[Site],
    starts_at: datetime,
    ends_at: datetime,
    reason: Reason,
    *,
    title: str = "",
) -> tuple[MaintenanceWindow, Recomputation]:
    """Create a window that is over, and recompute its days with the same reason.

    Raises:
        MaintenanceError, InvalidRecomputation: the window is refused, or too long to be recomputed.
    """
    window = declare(name, sites, starts_at, ends_at, reason, title=title)
    return window, _recompute(sites, starts_at, ends_at, reason)


@transaction.atomic
def withdraw_and_recompute(window: MaintenanceWindow, reason: Reason) -> Recomputation | None:
    """Delete *window*, and recompute its days with the same reason if it has begun and occurs once.

    The days of a recurring window are computed again by themselves, except those of final months.

    Raises:
        MaintenanceError, InvalidRecomputation: the deletion is refused, or the window is too long.
    """
    starts_at, ends_at, schedule = window.starts_at, window.ends_at, window.schedule
    sites = list(window.sites.all()) or list(Site.objects.all())
    withdraw(window, reason)
    if schedule or starts_at is None or ends_at is None or starts_at >= reason.at:
        return None
    return _recompute(sites, starts_at, min(ends_at, reason.at), reason) if sites else None


def _recompute(
    sites: Sequence[Site], starts_at: datetime, ends_at: datetime, reason: Reason
) -> Recomputation:
    last_moment = ends_at - timedelta.resolution
    request = RecomputationRequest(
        sites=sites,
        first=starts_at.astimezone(UTC).date(),
        last=last_moment.astimezone(UTC).date(),
        requester=reason.who,
        reason=reason.why,
    )
    return recompute(request, reason.at)
