"""One tick of the monitor's clock: everything that is due at a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from monitor.alerts import deliver, evaluate
from monitor.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.ledger import claim, heartbeats, holds
from monitor.ledger.expand import BEAT, expand
from monitor.ledger.reap import reap, renew_leases
from monitor.ledger.retry import retry
from monitor.worker.dispatch import dispatch

if TYPE_CHECKING:
    from datetime import datetime


def tick(now: datetime) -> None:
    """End holds, expand schedules, reap, retry, claim and send; then open and close alerts, and have
    people told."""
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.TICK):
            return
        holds.end_overdue(now)
        expand(now)
        if heartbeats.was_silent(BEAT, now):
            renew_leases(now)
        reap(now)
        retry(now)
        heartbeats.record(BEAT, now)
    dispatch(claim.claim_due(now))
    evaluate.look(now)
    deliver.ask(now)
