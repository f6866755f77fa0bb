"""The schedule of a day by resource: which runs it has, exclusive runs, maintenance and pauses."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Exists, F, OuterRef, Q

from monitor.depot.series.expected_seconds import expected_seconds
from monitor.models import Binding, Hold, Resource, Run, Series
from monitor.models.hold import HoldKind, HoldMode
from monitor.models.run import PENDING, State
from monitor.models.series import IMPORTED
from monitor.runs.ledger.schedule_sql import counts_of_runs
from monitor.runs.maintenance.windows import planned_windows

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.site import ResourceQuerySet

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
STEP = timedelta(minutes=15)
STEPS = DAY // STEP
MOST_EXCLUSIVE, MOST_AT_ONCE = 500, 200  # runs of a page


class RunKind(StrEnum):
    """What became of a run, as the timeline draws it."""

    PLANNED = "planned"
    PASSED = "passed"
    SKIPPED = "skipped"
    MONITORING = "monitoring"
    FAILED = "failed"


_KINDS: Mapping[str, RunKind] = {
    **dict.fromkeys((State.EXPECTED, State.CLAIMED, State.RUNNING), RunKind.PLANNED),
    **dict.fromkeys((State.SKIPPED, State.NO_DATA), RunKind.SKIPPED),
    **dict.fromkeys((State.BROKEN, State.MISSED, State.LOST), RunKind.MONITORING),
    **dict.fromkeys((State.FAILED, State.TIMED_OUT), RunKind.FAILED),
    State.PASSED: RunKind.PASSED,
}


@dataclass(frozen=True)
class Closure:
    """A maintenance window or a pause, inside the day."""

    starts_at: datetime
    ends_at: datetime
    text: str


@dataclass(frozen=True)
class ExclusiveRun:
    """A run that shares neither its sites nor its links; before its end, *ends_at* is the expected end."""

    run: uuid.UUID
    series: str
    state: str
    slot: datetime
    starts_at: datetime
    ends_at: datetime
    is_expected: bool


@dataclass
class ResourceDay:
    """A day of a resource. *counts*: runs by kind, for each of ``STEPS`` intervals from its start."""

    name: str
    site: str
    counts: list[dict[RunKind, int]] = field(default_factory=lambda: [{} for _ in range(STEPS)])
    exclusives: list[ExclusiveRun] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)

    @property
    def runs(self) -> int:
        return sum(sum(each.values()) for each in self.counts)

    def total(self, kind: RunKind, first: int = 0, end: int = STEPS) -> int:
        """Return the number of runs of *kind* in the intervals from *first* until before *end*."""
        return sum(each.get(kind, 0) for each in self.counts[first:end])


def visible_resources(user: AbstractBaseUser | AnonymousUser, text: str = "") -> ResourceQuerySet:
    """Return the resources that *user* may see, by site; *text* is part of the name of one or of its site.

    Resources of imported history are left out: nothing runs there.
    """
    is_used = Exists(
        Binding.objects.filter(resource=OuterRef("pk")).exclude(series__probe__startswith=IMPORTED).order_by()
    )
    resources = Resource.objects.visible_to(user).filter(is_used).select_related("site")
    resources = resources.order_by("site__sort_name", "sort_name")
    return resources.filter(Q(name__icontains=text) | Q(site__name__icontains=text)) if text else resources


def days_of_resources(
    user: AbstractBaseUser | AnonymousUser, resources: Sequence[Resource], start: datetime
) -> list[ResourceDay]:
    """Return the day from *start* on of each of *resources*, with the runs that *user* may see."""
    days = {each.pk: ResourceDay(each.name, each.site.name) for each in resources}
    for resource, begin, state, count in counts_of_runs(user, list(days), start, start + DAY, STEP):
        kinds = days[resource].counts[(begin - start) // STEP]
        kinds[_KINDS[state]] = kinds.get(_KINDS[state], 0) + count
    for resource, run in _exclusive_runs(user, list(days), start):
        days[resource].exclusives.append(run)
    closures = list(_closures(user, start))
    for day in days.values():
        day.closures = [closure for sites, closure in closures if not sites or day.site in sites]
    return list(days.values())


def runs_at(user: AbstractBaseUser | AnonymousUser, resources: Sequence[Resource], at: datetime) -> list[Run]:
    """Return the runs that used one of *resources* in the minute of *at*; none with a slot a day before.

    Runs that did not start, because they were skipped or missed, follow: they count for ``STEP`` from their
    slot.
    """
    bound = Binding.objects.filter(resource__in=[each.pk for each in resources]).order_by().values("series")
    series = Series.objects.visible_to(user).filter(pk__in=bound).values("pk")
    was_running = Q(started_at__lt=at + MINUTE) & (Q(ended_at__gt=at) | Q(ended_at=None))
    did_not_start = Q(started_at=None, slot__gt=at - STEP) & ~Q(state=State.EXPECTED)
    runs = Run.objects.filter(series__in=series, slot__gt=at - DAY, slot__lt=at + MINUTE)
    chosen = runs.filter(was_running | did_not_start).select_related("series")
    return list(chosen.order_by(F("started_at").asc(nulls_last=True), "-slot")[:MOST_AT_ONCE])


def _exclusive_runs(
    user: AbstractBaseUser | AnonymousUser, resources: Sequence[int], start: datetime
) -> Iterator[tuple[int, ExclusiveRun]]:
    bindings = Binding.objects.filter(resource__in=resources, series__enabled=True).exclude(
        series__exclusive=""
    )
    visible = Series.objects.visible_to(user).filter(pk__in=bindings.order_by().values("series"))
    places: dict[int, set[int]] = defaultdict(set)
    for series, resource in bindings.order_by().values_list("series", "resource"):
        places[series].add(resource)
    if not places:
        return
    runs = Run.objects.filter(series__in=visible.values("pk"), slot__gte=start, slot__lt=start + DAY)
    runs = runs.filter(Q(state__in=PENDING) | Q(started_at__isnull=False))
    shown = list(runs.select_related("series").order_by("slot")[:MOST_EXCLUSIVE])
    expected = expected_seconds(visible)
    for run in shown:
        seconds = expected.get(run.series.name, {}).get("total.seconds", run.series.limit_seconds)
        begin = run.started_at or run.due_at
        end = run.ended_at or begin + timedelta(seconds=seconds)
        exclusive = ExclusiveRun(
            run.pk, run.series.name, run.state, run.slot, begin, end, run.ended_at is None
        )
        for resource in places[run.series_id]:
            yield resource, exclusive


def _closures(
    user: AbstractBaseUser | AnonymousUser, start: datetime
) -> Iterator[tuple[frozenset[str], Closure]]:
    """Yield the sites (empty: every site) and the times of maintenance windows and of pauses of sites."""
    end = start + DAY
    for window in planned_windows(start, end):
        times = max(window.starts_at, start), min(window.ends_at, end)
        yield window.sites, Closure(*times, f"maintenance: {window.title}")
    holds = Hold.objects.visible_to(user).filter(kind=HoldKind.SITE, began_at__lt=end)
    for hold in holds.exclude(ended_at__lte=start):
        until = hold.ended_at or hold.until
        if until is None or until > start:
            text = f"{HoldMode(hold.mode).label} by {hold.who}: {hold.why}"
            yield frozenset([hold.name]), Closure(max(hold.began_at, start), min(until or end, end), text)
