"""What a pause would affect: series, sites, and the runs that would not start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Min, Q

from monitor.models import Run, Site
from monitor.models.run import State

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.hold import Scope

LEDGER_HOURS = 24  # slots further ahead are not in the ledger yet


@dataclass(frozen=True)
class HoldPreview:
    """What a pause of a scope from now on affects, as far as the user may see it.

    Attributes:
        series: the number of enabled series.
        queued, running: the numbers of claimed and of running runs.
        next_slot: the slot of the first run that would not start.
        runs: the number of runs that would not start, by the duration of the pause in hours.
    """

    series: int
    sites: Sequence[str]
    queued: int
    running: int
    next_slot: datetime | None
    runs: Mapping[int, int]


def preview_hold(
    scope: Scope, user: AbstractBaseUser | AnonymousUser, hours: Sequence[int], now: datetime
) -> HoldPreview:
    """Return what a pause of *scope* affects; durations of *hours* beyond ``LEDGER_HOURS`` are left out."""
    series = scope.series().visible_to(user).filter(enabled=True)
    within = [each for each in hours if each <= LEDGER_HOURS]
    expected = Run.objects.filter(
        series__in=series.order_by().values("pk"),
        state=State.EXPECTED,
        slot__gte=now - timedelta(hours=1),
        slot__lte=now + timedelta(hours=LEDGER_HOURS),
    )
    counts = {f"in_{each}": Count("pk", filter=Q(due_at__lte=now + timedelta(hours=each))) for each in within}
    found = expected.aggregate(next_slot=Min("slot"), **counts)
    states = Run.objects.in_flight().filter(series__in=series.order_by().values("pk")).order_by()
    in_flight = dict(states.values_list("state").annotate(Count("pk")))
    sites = Site.objects.filter(resources__bindings__series__in=series).order_by("sort_name").distinct()
    return HoldPreview(
        series=series.count(),
        sites=list(sites.values_list("name", flat=True)),
        queued=in_flight.get(State.CLAIMED, 0),
        running=in_flight.get(State.RUNNING, 0),
        next_slot=found["next_slot"],
        runs={each: found[f"in_{each}"] for each in within},
    )
