"""Claim due runs for their reporters. Due times live here, in PostgreSQL; the broker only carries run ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from monitor.admission import Candidate, Skip, Wait, decide, rules
from monitor.models import Reporter, Run
from monitor.models.run import RunQuerySet, State
from monitor.services.situation import candidates, situation

if TYPE_CHECKING:
    import uuid

BATCH = 500  # of a reporter's due runs are looked at together
LOCK = 0x636C6D  # "clm": one claims at a time


@dataclass(frozen=True)
class Claim:
    """A run that its reporter is to start; *attempt* tells this claim from earlier ones."""

    run_id: uuid.UUID
    attempt: int
    queue: str


def lease_until(now: datetime) -> datetime:
    """Until when an executor that gave a sign of life at *now* is taken to be alive."""
    return now + timedelta(seconds=settings.GRIDCAST_LEASE_SECONDS)


@transaction.atomic
def claim_due(now: datetime) -> list[Claim]:
    """Claim what is due and may begin (``monitor.admission``), oldest first; what may not waits or is
    skipped.

    Two claimers at once do no harm: one counts the room at a time, and rows that somebody else holds are
    passed over.
    """
    _alone()
    reporters = list(Reporter.objects.all())
    due = sorted((run for one in reporters for run in _due(one, now)), key=lambda run: (run.due_at, run.pk))
    decided = list(decide(candidates(due), situation(now), rules.every()))
    queues, runs = {one.name: one.queue for one in reporters}, {run.pk: run for run in due}
    admitted = [one for one, verdict in decided if verdict is None]
    for one, verdict in decided:
        if isinstance(verdict, Skip):
            _skip(one, verdict)
        elif isinstance(verdict, Wait):
            _keep(runs[one.run], verdict)
    _mark_claimed([one.run for one in admitted], now)
    return [Claim(one.run, runs[one.run].attempt + 1, queues[one.demand.reporter]) for one in admitted]


@transaction.atomic
def claim_one(run: Run, now: datetime) -> Claim | None:
    """Claim this very run, room or not; None if somebody else has it, or its series is busy."""
    _alone()
    if Run.objects.filter(series=run.series_id).in_flight().exists():
        return None
    queue = Reporter.objects.get(series=run.series_id).queue
    return Claim(run.pk, run.attempt + 1, queue) if _mark_claimed([run.pk], now) else None


def release(claim: Claim) -> None:
    """Take back a claim that could not be handed over; the attempt does not count."""
    Run.objects.filter(attempt=claim.attempt, state=State.CLAIMED).move(
        [claim.run_id], State.EXPECTED, cause="the broker did not take it", attempt=F("attempt") - 1
    )


def _alone() -> None:
    """Until the end of the transaction nobody else claims."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def _due(reporter: Reporter, now: datetime) -> RunQuerySet:
    due = Run.objects.filter(series__reporter=reporter).due(now).wanted().order_by("due_at")
    return due.select_for_update(skip_locked=True, of=("self",))[:BATCH]


def _skip(candidate: Candidate, skip: Skip) -> None:
    Run.objects.all().move([candidate.run], State.SKIPPED, cause="its time came", reason=skip.reason)


def _keep(run: Run, wait: Wait) -> None:
    """Say why it waits, once; a slot that may wait long is not missed meanwhile."""
    if (run.reason, run.kept_until) != (wait.reason, wait.until):
        Run.objects.filter(pk=run.pk).update(reason=wait.reason, kept_until=wait.until)


def _mark_claimed(runs: list[uuid.UUID], now: datetime) -> int:
    return Run.objects.all().move(
        runs,
        State.CLAIMED,
        cause="claimed for its reporter",
        claimed_at=now,
        lease_until=lease_until(now),
        attempt=F("attempt") + 1,
        reason="",
    )
