"""Claim due runs for their reporters. Due times live here, in PostgreSQL; the broker only carries run ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import F

from monitor.models import Reporter, Run
from monitor.models.run import SCHEDULE, State
from monitor.services import health

if TYPE_CHECKING:
    import uuid

BATCH = 500


@dataclass(frozen=True)
class Claim:
    """A run that its reporter is to start; *attempt* tells this claim from earlier ones."""

    run_id: uuid.UUID
    attempt: int
    queue: str


def lease_until(now: datetime) -> datetime:
    """Until when an executor that gave a sign of life at *now* is taken to be alive."""
    return now + timedelta(seconds=settings.GRIDCAST_LEASE_SECONDS)


def claim_due(now: datetime) -> list[Claim]:
    """Claim as many due runs as every reporter has room for, oldest slot first.

    Two claimers at once do no harm: rows are locked, and those that another holds are passed over. A
    scheduled slot whose series is still running ends as ``skipped``; a run that somebody asked for waits.
    So does everything for a reporter that has fallen silent: what it got would only be taken for dead.
    """
    heard = [one for one in Reporter.objects.all() if not health.fell_silent(one.component, now)]
    return [claim for reporter in heard for claim in _claim_for(reporter, now)]


@transaction.atomic
def claim_one(run: Run, now: datetime) -> Claim | None:
    """Claim this very run, room or not; None if somebody else has it, or its series is busy."""
    reporter = Reporter.objects.select_for_update().get(series=run.series_id)
    if Run.objects.filter(series=run.series_id).in_flight().exists():
        return None
    return Claim(run.pk, run.attempt + 1, reporter.queue) if _mark_claimed([run], now) else None


def release(claim: Claim) -> None:
    """Take back a claim that could not be handed over; the attempt does not count."""
    Run.objects.filter(attempt=claim.attempt, state=State.CLAIMED).move(
        [claim.run_id], State.EXPECTED, cause="the broker did not take it", attempt=F("attempt") - 1
    )


@transaction.atomic
def _claim_for(reporter: Reporter, now: datetime) -> list[Claim]:
    Reporter.objects.select_for_update().get(pk=reporter.pk)  # room is counted by one claimer at a time
    mine = Run.objects.filter(series__reporter=reporter)
    busy = set(mine.in_flight().values_list("series_id", flat=True))
    room = reporter.capacity - mine.in_flight().count()
    claimed: list[Run] = []
    due = mine.due(now).wanted().order_by("slot")
    for run in due.select_for_update(skip_locked=True, of=("self",))[:BATCH]:
        if run.series_id in busy:
            _skip_overlap(run)
        elif len(claimed) < room:
            claimed.append(run)
            busy.add(run.series_id)
    _mark_claimed(claimed, now)
    return [Claim(run.pk, run.attempt + 1, reporter.queue) for run in claimed]


def _skip_overlap(run: Run) -> None:
    if run.trigger == SCHEDULE and run.attempt == 0:
        reason = "overlap: the run before it had not ended when its time came"
        Run.objects.all().move([run.pk], State.SKIPPED, cause="its time came", reason=reason)


def _mark_claimed(runs: list[Run], now: datetime) -> int:
    return Run.objects.all().move(
        [run.pk for run in runs],
        State.CLAIMED,
        cause="claimed for its reporter",
        claimed_at=now,
        lease_until=lease_until(now),
        attempt=F("attempt") + 1,
        reason="",
    )
