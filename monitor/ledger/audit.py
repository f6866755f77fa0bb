"""Does every slot that a schedule gave have exactly one outcome? Recomputed from the schedules themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Count, Q

from monitor.ledger.expand import slots_of
from monitor.models import Run, Series
from monitor.models.run import REPORTED
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime

_TICKS = timedelta(seconds=30)  # what is over its time is noticed by a tick


@dataclass(frozen=True)
class Finding:
    """A slot with which something is wrong."""

    series: str
    slot: datetime
    what: str


@dataclass
class Audit:
    """What was looked at, and what is wrong: slots without a run, with two outcomes, without one in time."""

    series: int = 0
    slots: int = 0
    missing: list[Finding] = field(default_factory=list)
    doubled: list[Finding] = field(default_factory=list)
    overdue: list[Finding] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        return [*self.missing, *self.doubled, *self.overdue]


def audit(since: datetime, now: datetime) -> Audit:
    """Hold the ledger against the schedules in (*since*, *now*].

    A series is looked at from when its present schedule came into force: what an earlier one gave is not
    known any more. One whose schedule was changed since the last tick waits for the next.
    """
    found = Audit()
    for series in Series.objects.scheduled().exclude(scheduled_since=None).select_related("leader"):
        _look_for_missing(series, since, now, found)
    found.doubled = _doubled(since, now)
    found.overdue = _overdue(since, now)
    return found


def _look_for_missing(series: Series, since: datetime, now: datetime, found: Audit) -> None:
    after = max(since, series.scheduled_since or since)
    try:
        wanted = list(slots_of(series, after, now))
    except InvalidSchedule:  # nothing is expected of it; the tick says so
        return
    listed = set(series.runs.filter(slot__gt=after, slot__lte=now).values_list("slot", flat=True))
    found.series += 1
    found.slots += len(wanted)
    found.missing += [Finding(series.name, slot, "has no run") for slot in wanted if slot not in listed]


def _doubled(since: datetime, now: datetime) -> list[Finding]:
    reports = Count("transitions", filter=Q(transitions__target__in=REPORTED))
    ended = Run.objects.filter(slot__gt=since, slot__lte=now).order_by("slot")
    twice = ended.values_list("series__name", "slot").annotate(reports=reports).filter(reports__gt=1)
    return [Finding(name, slot, f"has {number} outcomes") for name, slot, number in twice]


def _overdue(since: datetime, now: datetime) -> list[Finding]:
    grace = timedelta(seconds=settings.GRIDCAST_GRACE_SECONDS) + _TICKS
    late = Run.objects.overdue(now - grace) | Run.objects.silent(now - _TICKS)
    named = late.filter(slot__gt=since).order_by("slot").values_list("series__name", "slot", "state")
    return [Finding(name, slot, f"is still {state}") for name, slot, state in named]
