"""The state of maintenance windows as a page shows it: who changed each last, and what feeds announce."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Q

from monitor.models import MaintenanceChange, MaintenanceWindow
from monitor.runs.maintenance.changes import DECLARED

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


@dataclass(frozen=True)
class FeedStatus:
    """A feed of maintenance windows.

    Attributes:
        windows: the number of its windows that the user may see; *ahead* of them are not over.
        changed_at: when an import last changed something; an import without a change leaves no record.
    """

    source: str
    windows: int
    ahead: int
    changed_at: datetime | None


def feed_statuses(user: AbstractBaseUser | AnonymousUser, now: datetime) -> Sequence[FeedStatus]:
    """Return the feeds with windows that *user* may see, by name."""
    visible = MaintenanceWindow.objects.filter(pk__in=MaintenanceWindow.objects.visible_to(user).values("pk"))
    feeds = visible.exclude(source__in=["", DECLARED]).order_by("source").values_list("source")
    counted = list(feeds.annotate(windows=Count("pk"), ahead=Count("pk", filter=Q(ends_at__gt=now))))
    changes = MaintenanceChange.objects.filter(source__in=[source for source, *_ in counted]).order_by()
    changed_at = dict(changes.values_list("source").annotate(Max("at")))
    return [FeedStatus(source, windows, ahead, changed_at.get(source)) for source, windows, ahead in counted]


def latest_changes(windows: Collection[str]) -> Mapping[str, MaintenanceChange]:
    """Return the newest recorded change of each of *windows* (names); windows without a record are absent."""
    changes = MaintenanceChange.objects.filter(window__in=windows)
    return {change.window: change for change in changes.order_by("window", "-at", "-id").distinct("window")}


def window_changes(window: str, most: int) -> Sequence[MaintenanceChange]:
    """Return the newest recorded changes of *window*, at most *most*."""
    return list(MaintenanceChange.objects.filter(window=window)[:most])
