"""What caused skipped runs: the pause of a scope, or a maintenance window."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from monitor.models import Binding, Hold
from monitor.models.run import State
from monitor.runs.maintenance.windows import planned_windows

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models import Run
    from monitor.runs.maintenance.times import OpenWindow

MAINTENANCE = "maintenance"
_LATEST_START = timedelta(hours=1)  # of a pause or window after the slot that it skips: runs may wait


@dataclass(frozen=True)
class SkipCause:
    """The cause of a skipped run.

    Attributes:
        kind: ``maintenance``, or the kind of the scope that was paused.
        name: the title of the window, or the name of the scope.
        who: the user who paused it; empty for maintenance.
        began_at, ends_at: from when until when; None: until a user resumes the scope.
    """

    kind: str
    name: str
    who: str
    began_at: datetime
    ends_at: datetime | None

    @property
    def is_maintenance(self) -> bool:
        return self.kind == MAINTENANCE


def skip_causes(runs: Iterable[Run], user: AbstractBaseUser | AnonymousUser) -> Mapping[uuid.UUID, SkipCause]:
    """Return by run what caused those of *runs* that were skipped, if a pause or maintenance did."""
    skipped = [run for run in runs if run.state == State.SKIPPED]
    if not skipped:
        return {}
    first, last = min(run.slot for run in skipped), max(run.slot for run in skipped)
    holds = _holds(skipped, first, last, user)
    windows, sites = [], {}
    if any(run.reason.startswith(MAINTENANCE) for run in skipped):
        windows = list(planned_windows(first, last + _LATEST_START))
        sites = _sites({run.series_id for run in skipped})
    causes = {
        run.pk: _held(run, holds.get((run.series_id, run.reason), ()))
        or _in_maintenance(run, windows, sites.get(run.series_id, ()))
        for run in skipped
    }
    return {key: cause for key, cause in causes.items() if cause}


def _holds(
    skipped: Iterable[Run], first: datetime, last: datetime, user: AbstractBaseUser | AnonymousUser
) -> dict[tuple[int, str], list[Hold]]:
    """Return by series and reason of *skipped* runs the visible holds over them at that time."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for run in skipped:
        wanted[run.reason].add(run.series_id)
    covering: dict[tuple[int, str], list[Hold]] = defaultdict(list)
    for hold in (
        Hold.objects.visible_to(user).filter(began_at__lte=last + _LATEST_START).exclude(ended_at__lt=first)
    ):
        if keys := wanted.get(hold.reason):
            for key in hold.scope.series().filter(pk__in=keys).values_list("pk", flat=True):
                covering[key, hold.reason].append(hold)
    return covering


def _held(run: Run, holds: Sequence[Hold]) -> SkipCause | None:
    """Return the pause that has the reason of *run*, the latest that began before its slot if possible."""
    if not holds:
        return None
    before = [hold for hold in holds if hold.began_at <= (run.ended_at or run.slot)]
    hold = max(before or holds, key=lambda each: each.began_at)
    return SkipCause(hold.kind, hold.name, hold.who, hold.began_at, hold.ended_at or hold.until)


def _in_maintenance(run: Run, windows: Iterable[OpenWindow], sites: Collection[str]) -> SkipCause | None:
    for window in windows:
        if window.reason == run.reason and window.covers(sites):
            return SkipCause(MAINTENANCE, window.title, "", window.starts_at, window.ends_at)
    return None


def _sites(series: Collection[int]) -> dict[int, set[str]]:
    sites: dict[int, set[str]] = defaultdict(set)
    rows = Binding.objects.filter(series__in=series).order_by()
    for key, site in rows.values_list("series_id", "resource__site__name"):
        sites[key].add(site)
    return sites
