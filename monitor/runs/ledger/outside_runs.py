"""Runs that programs outside of gridcast start and report: jobs of cron, other monitors, schedulers.

No such run is claimed: it is ``expected`` until its start or its report arrives. A run without a report is
``missed`` when the time limit of its series and a grace time have passed since its slot, and ``lost`` when
the limit has passed since its start. A late report corrects both.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, Value
from django.db.models.functions import Greatest

from monitor.models import Binding, Hold, Run, Series
from monitor.models.run import State
from monitor.runs.ledger import heartbeats, transitions
from monitor.runs.ledger.holds import covering_holds
from monitor.runs.ledger.transitions import LockedMove
from monitor.runs.maintenance.windows import open_windows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from monitor.models.run import RunQuerySet

GRACE = timedelta(minutes=10)  # for a late start of the program, and for its report to arrive
MAX_REAPED = 2_000  # of each kind in one tick; further ticks move the others
_SECOND = timedelta(seconds=1)
_STARTED = "its program announced the start"


def overdue(runs: RunQuerySet, now: datetime) -> RunQuerySet:
    """Return the expected runs among *runs*, all from outside, whose report should have come.

    After an outage of the server, senders have ``GRACE`` to send what they could not deliver meanwhile.
    """
    back_at = heartbeats.back_at(heartbeats.SCHEDULER)
    if back_at is not None and now < back_at + GRACE:
        return runs.none()
    limit = ExpressionWrapper(F("series__limit_seconds") * Value(_SECOND), DurationField())
    late = runs.due(now - GRACE).annotate(limit=limit).filter(due_at__lte=Value(now - GRACE) - F("limit"))
    return late.filter(Q(wait_until=None) | Q(wait_until__lte=now))


@transaction.atomic
def reap_outside_runs(now: datetime, *, at_most: int = MAX_REAPED) -> None:
    """End overdue runs as ``missed``, or ``skipped`` if they were due in a maintenance window or a hold, and
    runs that have started and not ended in time as ``lost``; *at_most* of each kind, oldest first.

    Runs whose reports another transaction is storing are left out.
    """
    outside = Run.objects.from_outside()
    late, silent = overdue(outside, now), outside.silent(now)
    columns = ("pk", "slot", "series", "state", "series__limit_seconds")
    moves = []
    unstarted = [*_locked(late, "due_at").values_list(*columns, "due_at")[:at_most]]
    excuses = _excuses((series, due_at) for _, _, series, _, _, due_at in unstarted)
    for run, slot, series, state, limit, due_at in unstarted:
        wait = limit + GRACE.total_seconds()
        reason, target = f"no report came within {wait:,.0f} s of its slot", State.MISSED
        if excuse := excuses.get((series, due_at)):
            reason, target = excuse, State.SKIPPED
        moves.append(LockedMove(run, slot, series, state, target, "its grace time was over", reason))
    for run, slot, series, state, limit in _locked(silent, "lease_until").values_list(*columns)[:at_most]:
        reason = f"its end was not reported within {limit:,.0f} s of its start"
        moves.append(LockedMove(run, slot, series, state, State.LOST, "its time limit was over", reason))
    transitions.move_locked(moves)


def _locked(runs: RunQuerySet, order: str) -> RunQuerySet:
    return runs.order_by(order).select_for_update(of=("self",), skip_locked=True, no_key=True)


def _excuses(due: Iterable[tuple[int, datetime]]) -> dict[tuple[int, datetime], str]:
    """Return why runs of a series that were due at a time need no report: a maintenance window, or a hold."""
    excuses: dict[tuple[int, datetime], str] = {}
    times: dict[datetime, set[int]] = {}
    for series, due_at in due:
        times.setdefault(due_at, set()).add(series)
    sites = _sites({key for keys in times.values() for key in keys})
    for due_at, keys in times.items():
        holds = covering_holds(keys, Hold.objects.covering(due_at))
        excuses |= {(key, due_at): hold.reason for key, hold in holds.items()}
        for window in open_windows(due_at):
            covered = (key for key in keys if window.covers(sites.get(key, frozenset())))
            excuses |= {(key, due_at): window.reason for key in covered}
    return excuses


def _sites(series: Collection[int]) -> dict[int, frozenset[str]]:
    bound = Binding.objects.filter(series__in=series).order_by()
    sites: dict[int, set[str]] = {}
    for key, site in bound.values_list("series", "resource__site__name").distinct():
        sites.setdefault(key, set()).add(site)
    return {key: frozenset(names) for key, names in sites.items()}


def extend_leases(now: datetime) -> None:
    """Let senders report the ends of running runs that they could not deliver in an outage of the server."""
    running = Run.objects.from_outside().in_flight()
    running.update(lease_until=Greatest("lease_until", Value(now + GRACE)))


def start(series: Series, slot: datetime, now: datetime) -> None:
    """Record that the program of *series* has started the run of *slot*, or has started it again.

    Its lease is the time limit of the series. An ended run stays as it is: its report will correct it.
    """
    runs = Run.objects.filter(series=series)
    keys = list(runs.filter(slot=slot).values_list("pk", flat=True))
    transitions.move(runs, keys, State.CLAIMED, cause=_STARTED, slots=[slot], claimed_at=now, attempt=1)
    transitions.move(runs, keys, State.RUNNING, cause=_STARTED, slots=[slot], reason="")
    until = now + timedelta(seconds=series.limit_seconds)
    runs.filter(slot=slot, state=State.RUNNING).update(started_at=now, lease_until=until)
