"""One tick of the scheduler: start and end everything that is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from monitor.analysis.alerts import deliver, evaluate
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.runs.ledger import agent_runs, claim, heartbeats, holds, outside_runs
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.reap import reap, renew_leases
from monitor.runs.ledger.retry import retry
from monitor.runs.worker.dispatch import dispatch

if TYPE_CHECKING:
    from datetime import datetime


def tick(now: datetime) -> None:
    """End expired holds, expand schedules, reap, retry, claim and dispatch; then evaluate and send alerts.

    If another process is executing these steps, this call does nothing.
    """
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.TICK):
            return
        holds.end_overdue(now)
        expand(now)
        if heartbeats.was_silent(heartbeats.SCHEDULER, now):
            renew_leases(now)
            agent_runs.extend_leases(now)
            outside_runs.extend_leases(now)
        heartbeats.record(heartbeats.SCHEDULER, now)
        reap(now)
        agent_runs.reap_agent_runs(now)
        outside_runs.reap_outside_runs(now)
        retry(now)
    dispatch(claim.claim_due(now))
    evaluate.evaluate(now)
    deliver.dispatch_due(now)
