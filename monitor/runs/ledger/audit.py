"""Audit the ledger: recompute the slots from the schedules and check that each has exactly one outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Count, Q

from monitor.models import Run, Series
from monitor.models.run import REPORTED
from monitor.runs.ledger import agent_runs, outside_runs
from monitor.runs.ledger.expand import slots_of
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime

_TICKS = timedelta(seconds=30)  # time for a tick to end what is overdue


@dataclass(frozen=True)
class Finding:
    """A slot with a defect; *what* describes the defect in words, such as "has no run"."""

    series: str
    slot: datetime
    what: str


@dataclass
class Audit:
    """The result of an audit.

    Attributes:
        series: the number of checked series.
        slots: the number of checked slots.
        missing: slots without a run.
        doubled: slots with several outcomes.
        overdue: slots whose run has no outcome although its time is over.
    """

    series: int = 0
    slots: int = 0
    missing: list[Finding] = field(default_factory=list)
    doubled: list[Finding] = field(default_factory=list)
    overdue: list[Finding] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        return [*self.missing, *self.doubled, *self.overdue]


def audit(since: datetime, now: datetime) -> Audit:
    """Compare the ledger with the schedules in (*since*, *now*].

    Each series is checked from the time its present schedule took effect: earlier schedules are not kept.
    A series whose schedule changed after the last tick is not checked for missing runs before the next tick.
    """
    result = Audit()
    expanded = Series.objects.scheduled().filter(expanded_until__isnull=False)
    for series in expanded.select_related("leader"):
        _find_missing(series, since, now, result)
    result.doubled = _doubled(since, now)
    result.overdue = _overdue(since, now)
    return result


def _find_missing(series: Series, since: datetime, now: datetime, result: Audit) -> None:
    after = max(since, series.scheduled_since or since)
    try:
        slots = list(slots_of(series, after, now))
    except InvalidSchedule:  # the tick logs it
        return
    recorded = set(series.runs.filter(slot__gt=after, slot__lte=now).values_list("slot", flat=True))
    result.series += 1
    result.slots += len(slots)
    result.missing += [Finding(series.name, slot, "has no run") for slot in slots if slot not in recorded]


def _doubled(since: datetime, now: datetime) -> list[Finding]:
    reports = Count("transitions", filter=Q(transitions__target__in=REPORTED))
    runs = Run.objects.filter(slot__gt=since, slot__lte=now).order_by("slot")
    doubled = runs.values_list("series__name", "slot").annotate(reports=reports).filter(reports__gt=1)
    return [Finding(name, slot, f"has {count} outcomes") for name, slot, count in doubled]


def _overdue(since: datetime, now: datetime) -> list[Finding]:
    grace = timedelta(seconds=settings.GRIDCAST_GRACE_SECONDS) + _TICKS
    of_agents = agent_runs.overdue(Run.objects.of_agents(), now - _TICKS)
    from_outside = outside_runs.overdue(Run.objects.from_outside(), now - _TICKS)
    late = [Run.objects.of_workers().overdue(now - grace), of_agents, from_outside]
    rows = [
        row
        for runs in (*late, Run.objects.silent(now - _TICKS))
        for row in runs.filter(slot__gt=since).values_list("slot", "series__name", "state")
    ]
    return [Finding(name, slot, f"is still {state}") for slot, name, state in sorted(set(rows))]
