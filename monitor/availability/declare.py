"""Declare a maintenance window after the fact, and recompute the availability of its days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.availability.recompute import RecomputationRequest, recompute
from monitor.ledger.maintenance_changes import Reason, declare

if TYPE_CHECKING:
    from monitor.models import MaintenanceWindow, Recomputation, Site


@transaction.atomic
def declare_and_recompute(
    name: str, site: Site, starts_at: datetime, ends_at: datetime, reason: Reason
) -> tuple[MaintenanceWindow, Recomputation]:
    """Create a window that is over, and recompute its days with the same reason; both or neither.

    Raises:
        MaintenanceError, InvalidRecomputation: the window is refused, or too long to be recomputed.
    """
    window = declare(name, site, starts_at, ends_at, reason)
    last_moment = ends_at - timedelta.resolution
    request = RecomputationRequest(
        sites=[site],
        first=starts_at.astimezone(UTC).date(),
        last=last_moment.astimezone(UTC).date(),
        requester=reason.who,
        reason=reason.why,
    )
    return window, recompute(request, reason.at)
