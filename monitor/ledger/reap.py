"""End what will not end by itself: runs whose executor died, slots that nobody took."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q

from monitor.ledger import transitions
from monitor.ledger.claim import lease_until
from monitor.ledger.usage import record_lost
from monitor.models import Run
from monitor.models.run import RunQuerySet, State

if TYPE_CHECKING:
    import uuid

_SILENT = "its lease was over"


@transaction.atomic  # a late report of a run that is given up waits, and then corrects what it used
def reap(now: datetime) -> None:
    """Give runs of dead executors back to be claimed again, or up; end slots past their grace as missed.

    What was claimed and never began is never given up: nothing of it can have been run.
    """
    silent = Run.objects.silent(now)
    most = settings.GRIDCAST_MAX_ATTEMPTS
    lost = _move(
        _begun(silent, most),
        State.LOST,
        f"its executor fell silent {most} times; it is not known whether it ran",
        cause=_SILENT,
    )
    began = silent.filter(state=State.RUNNING)
    _move(began, State.EXPECTED, "its executor fell silent; it is run again", cause=_SILENT)
    _move(silent, State.EXPECTED, "nobody began it; it is claimed again", cause=_SILENT)
    if lost:
        now_lost = Run.objects.filter(pk__in=lost.keys(), slot__in=set(lost.values()), state=State.LOST)
        record_lost(now_lost.prefetch_related("series__bindings__resource"))
    grace = timedelta(seconds=settings.GRIDCAST_GRACE_SECONDS)
    reason = f"no reporter took it within {grace.total_seconds():.0f} s of its time"
    _move(Run.objects.overdue(now - grace), State.MISSED, reason, cause="its grace was over")


def _begun(silent: RunQuerySet, times: int) -> RunQuerySet:
    """Those of *silent* runs that have begun so often: a claim by itself is no attempt."""
    running = silent.filter(state=State.RUNNING)
    begins = Count("transitions", filter=Q(transitions__target=State.RUNNING))
    often = Run.objects.filter(pk__in=running).annotate(begins=begins).filter(begins__gte=times)
    return running.filter(pk__in=often.values("pk"))


def renew_leases(now: datetime) -> None:
    """Renew every lease: the monitor itself was away, so that nobody could give it a sign of life."""
    Run.objects.in_flight().update(lease_until=lease_until(now))


def _move(runs: RunQuerySet, to: State, reason: str, *, cause: str) -> dict[uuid.UUID, datetime]:
    """Move *runs*; those that went, with their slots. One that somebody else has locked, to store its report
    say, is passed over: who waited for it might have what he waits for."""
    locked = runs.order_by("pk").select_for_update(skip_locked=True, no_key=True)
    slots = dict(locked.values_list("pk", "slot"))
    transitions.move(runs, slots, to, cause=cause, slots=set(slots.values()), reason=reason)
    return slots
