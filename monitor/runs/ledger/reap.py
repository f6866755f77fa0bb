"""End runs that will not end by themselves: their executor died, or no reporter claimed them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q

from monitor.models import Run
from monitor.models.run import RunQuerySet, State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import lease_until
from monitor.runs.ledger.transitions import LockedMove
from monitor.runs.ledger.usage import record_lost

if TYPE_CHECKING:
    import uuid

MAX_MOVED = 10_000  # by one statement of a tick; after a long outage the next ticks move the others
_LEASE_EXPIRED = "its lease expired"


@transaction.atomic  # a late report of a lost run waits for the commit, and then corrects the run's usage
def reap(now: datetime) -> None:
    """Move runs with an expired lease to ``expected`` or ``lost``, and runs past grace time to ``missed``:
    runs of Celery workers.

    A run is lost after ``GRIDCAST_MAX_ATTEMPTS`` starts. A run that was claimed and never started is not
    lost, because its probe cannot have run.
    """
    silent = Run.objects.of_workers().silent(now)
    max_attempts = settings.GRIDCAST_MAX_ATTEMPTS
    lost = _move(
        _started(silent, max_attempts),
        State.LOST,
        f"its executor fell silent {max_attempts} times; it is not known whether it ran",
        cause=_LEASE_EXPIRED,
    )
    running = silent.filter(state=State.RUNNING)
    _move(running, State.EXPECTED, "its executor fell silent; it is run again", cause=_LEASE_EXPIRED)
    _move(silent, State.EXPECTED, "no worker started it; it is claimed again", cause=_LEASE_EXPIRED)
    if lost:
        now_lost = Run.objects.filter(pk__in=lost.keys(), slot__in=set(lost.values()), state=State.LOST)
        record_lost(now_lost.prefetch_related("series__bindings__resource"))
    grace = timedelta(seconds=settings.GRIDCAST_GRACE_SECONDS)
    reason = f"no reporter took it within {grace.total_seconds():.0f} s of its time"
    late = Run.objects.of_workers().overdue(now - grace)
    _move(late, State.MISSED, reason, cause="its grace time was over", order="due_at")


def renew_leases(now: datetime) -> None:
    """Renew the leases of workers, after an outage of the monitor: meanwhile it received no heartbeats."""
    Run.objects.of_workers().in_flight().update(lease_until=lease_until(now))


def _started(silent: RunQuerySet, times: int) -> RunQuerySet:
    """Return the running runs of *silent* that were started at least *times* times; claims do not count."""
    running = silent.filter(state=State.RUNNING)
    starts = Count("transitions", filter=Q(transitions__target=State.RUNNING))
    often = Run.objects.filter(pk__in=running).annotate(starts=starts).filter(starts__gte=times)
    return running.filter(pk__in=often.values("pk"))


def _move(
    runs: RunQuerySet, to: State, reason: str, *, cause: str, order: str = "lease_until"
) -> dict[uuid.UUID, datetime]:
    """Lock and move ``MAX_MOVED`` of *runs*; return the slots of the locked runs by primary key.

    Runs that another transaction has locked, for instance to store their reports, are skipped: waiting for
    that transaction could deadlock. *order* is the column of the index that finds the runs: a tick must not
    pass over those of earlier ticks.
    """
    locked = runs.order_by(order).select_for_update(of=("self",), skip_locked=True, no_key=True)
    rows = locked.values_list("pk", "slot", "series", "state")[:MAX_MOVED]
    moves = [LockedMove(*row, to, cause, reason) for row in rows]
    transitions.move_locked(moves)
    return {move.run: move.slot for move in moves}
