"""A cheap version of what pages show: pages of equal versions need not be computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.core.db.change_counter import change_counter

if TYPE_CHECKING:
    from datetime import datetime


def depot_version(now: datetime) -> tuple[int, int]:
    """Return a value that changes soon after each change of the depot, and each minute.

    Time alone changes a page: results become stale, maintenance begins.
    """
    return change_counter(), int(now.timestamp()) // 60
