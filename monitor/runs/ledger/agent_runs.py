"""Runs of remote reporters: their agents start them by the schedule, and report when they can.

No such run is claimed. It is ``expected`` until an exchange of the agent lists it as running, or its report
arrives. What no agent reported in time is ``missed`` or ``lost``; a late report corrects both. The agent
itself enforces schedules, holds and maintenance windows (``monitor.runs.fleet.assignment``); the admission
rules apply to the runs that it is asked for: requested runs and retries.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db import transaction
from django.db.models import DurationField, Exists, ExpressionWrapper, F, OuterRef, Q, Value

from monitor.models import Reporter, ReporterStatus, Run
from monitor.models.reporter import PolicyStatus
from monitor.models.run import ENDED, PENDING, PLANNED, RETRY, SCHEDULE, State
from monitor.runs.ledger import heartbeats, transitions
from monitor.runs.ledger.admission import decide, rules
from monitor.runs.ledger.admission_context import load_context, load_due_runs
from monitor.runs.ledger.claim import record_rejection
from monitor.runs.ledger.transitions import LockedMove
from monitor.runs.ledger.usage import record_lost

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable

    from monitor.models.run import RunQuerySet
    from monitor.runs.ledger.admission import Skip, Wait

GRACE = timedelta(minutes=10)  # for the report or the exchange that lists the run
DELIVERY = timedelta(hours=2)  # of backlogs, after an outage of the server
LEASE = timedelta(minutes=5)  # of a running run: five exchanges
SILENT_AFTER = timedelta(minutes=3)
REQUEST_AGE = timedelta(days=1)  # after it, a requested run that no agent started is missed
MAX_REAPED = 10_000  # in one tick: .6 s of processor time
MAX_REQUESTS = 200  # in one exchange
AHEAD = timedelta(minutes=5)  # by which an agent's clock may be fast
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_RECENT = timedelta(days=31)
_SECOND = timedelta(seconds=1)
_EXPIRED = "its lease expired"
_GRACE_TEXT = f"{GRACE.total_seconds():.0f} s"


@dataclass(frozen=True)
class RequestedRun:
    """A run that an agent is asked for; it must not start the run after *expires_at*."""

    run: uuid.UUID
    series: str
    slot: datetime
    expires_at: datetime


@transaction.atomic
def requested_runs(reporter: Reporter, now: datetime) -> list[RequestedRun]:
    """Return the requested runs and retries of *reporter* that the admission rules let start, oldest first.

    Runs that the rules skip end as skipped. The other runs are returned again until the agent lists them as
    running or reports them: an answer may be lost.
    """
    due = Run.objects.due(now).filter(series__reporter=reporter, series__enabled=True)
    asked = due.filter(slot__gt=now - REQUEST_AGE, due_at__gt=now - REQUEST_AGE).exclude(trigger=SCHEDULE)
    runs = {run.pk: run for run in asked.select_related("series").order_by("due_at", "pk")[:MAX_REQUESTS]}
    if not runs:
        return []
    rejected: dict[Skip | Wait, list[Run]] = defaultdict(list)
    admitted: list[Run] = []
    for due_run, verdict in decide(load_due_runs(list(runs.values())), load_context(now), rules.in_order()):
        if verdict is None:
            admitted.append(runs[due_run.run])
        else:
            rejected[verdict].append(runs[due_run.run])
    for verdict, rejected_runs in rejected.items():
        record_rejection(verdict, rejected_runs)
    return [RequestedRun(run.pk, run.series.name, run.slot, _expires_at(run)) for run in admitted]


def _expires_at(run: Run) -> datetime:
    return run.due_at + (GRACE if run.trigger == RETRY else REQUEST_AGE)


@transaction.atomic
def renew_leases(reporter: Reporter, run_ids: Iterable[uuid.UUID], now: datetime) -> int:
    """Move the expected runs of *run_ids* to ``running``, and renew the leases of the running ones.

    Return the number of these runs. Runs of other reporters or of the future, and ended runs, are left out.
    """
    own = Run.objects.filter(pk__in=list(run_ids), series__reporter=reporter, slot__gt=now - _RECENT)
    own = own.filter(due_at__lte=now + AHEAD)
    states = (State.EXPECTED, State.RUNNING)
    locked = (
        own.filter(state__in=states)
        .order_by("pk")
        .select_for_update(
            of=("self",),
            skip_locked=True,
            no_key=True,  # a transaction that stores the report may have it
        )
    )
    rows = list(locked.values_list("pk", "slot", "state"))
    slots = {slot for _, slot, _ in rows}
    started = [pk for pk, _, state in rows if state == State.EXPECTED]
    if started:
        fields = {"claimed_at": now, "attempt": F("attempt") + 1, "reason": ""}
        transitions.move(own, started, State.CLAIMED, cause="its reporter started it", slots=slots, **fields)
        transitions.move(
            own, started, State.RUNNING, cause="its reporter started it", slots=slots, started_at=now
        )
    Run.objects.filter(pk__in=[pk for pk, _, _ in rows], slot__in=slots).update(lease_until=now + LEASE)
    return len(rows)


@transaction.atomic
def reap_agent_runs(now: datetime, *, at_most: int = MAX_REAPED) -> None:
    """Move runs past their grace time to ``missed``, and running runs with an expired lease to ``lost``.

    A call moves *at_most* runs of each kind, oldest first; after a long outage further calls move the others.
    """
    remote = Run.objects.of_agents()
    late = _locked(overdue(remote, now), "due_at", at_most)
    in_flight = _locked(remote.silent(now), "lease_until", at_most)
    why = absences({run.reporter for run in (*late, *in_flight)}, now)
    moves = [_missed(run, why[run.reporter]) for run in late]
    moves += [_silent(run, why[run.reporter]) for run in in_flight]
    transitions.move_locked(moves)
    if lost := {move.run: move.slot for move in moves if move.target == State.LOST}:
        runs = Run.objects.filter(pk__in=lost, slot__in=set(lost.values()), state=State.LOST)
        record_lost(runs.prefetch_related("series__bindings__resource"))


class _LockedRun(NamedTuple):
    key: uuid.UUID
    slot: datetime
    series: int
    reporter: str
    state: str
    trigger: str

    def move(self, target: State, cause: str, reason: str) -> LockedMove:
        return LockedMove(self.key, self.slot, self.series, self.state, target, cause, reason)


def _missed(run: _LockedRun, absence: str) -> LockedMove:
    waited = f"within {_GRACE_TEXT} of its time" if run.trigger in PLANNED else "within a day of its request"
    reason = absence or f"reporter {run.reporter} did not report it {waited}"
    return run.move(State.MISSED, "its grace time was over", reason)


def _silent(run: _LockedRun, absence: str) -> LockedMove:
    if run.state == State.CLAIMED:  # by a worker that ran the series before
        return run.move(State.EXPECTED, _EXPIRED, "")
    reason = absence or f"reporter {run.reporter} lists it no longer"
    return run.move(State.LOST, _EXPIRED, f"{reason}; it is not known whether it ended")


def _locked(runs: RunQuerySet, order: str, at_most: int) -> list[_LockedRun]:
    """Lock and return *at_most* of *runs*; runs whose reports another transaction is storing are left out.

    *order* is the column of the index that finds the runs: a tick must not pass over those of earlier ticks.
    """
    locked = runs.order_by(order).select_for_update(of=("self",), skip_locked=True, no_key=True)
    rows = locked.values_list("pk", "slot", "series", "series__reporter__name", "state", "trigger")
    return [_LockedRun(*row) for row in rows[:at_most]]


def overdue(runs: RunQuerySet, now: datetime) -> RunQuerySet:
    """Return the expected runs among *runs*, all of agents, whose grace time is over.

    A run may wait for exclusive series and for its leader's run; these waits are not part of the grace time.
    After an outage of the server, runs wait for their agents' backlogs too (``_awaited_since``).
    """
    awaited_since = _awaited_since(now)
    if awaited_since is not None:
        runs = runs.filter(due_at__lt=awaited_since)
    wait = ExpressionWrapper(F("series__exclusive_wait_seconds") * Value(_SECOND), DurationField())
    delay = ExpressionWrapper(F("series__delay_seconds") * Value(_SECOND), DurationField())
    leader_runs = Run.objects.filter(
        series=OuterRef("series__leader"), slot=OuterRef("slot"), trigger=SCHEDULE
    )
    is_led = Q(series__follows="after", trigger=SCHEDULE)
    may_follow = leader_runs.filter(
        Q(state__in=PENDING) | Q(state__in=ENDED, ended_at__gt=now - GRACE - OuterRef("delay"))
    )
    is_late = Q(trigger__in=PLANNED, due_at__lte=now - GRACE) | Q(due_at__lte=now - REQUEST_AGE - GRACE)
    late = runs.due(now - GRACE).filter(is_late).exclude(wait_until__gt=now)
    late = late.annotate(wait=wait, delay=delay)
    late = late.exclude(~Q(series__exclusive=""), due_at__gt=now - GRACE - F("wait"))
    return late.exclude(is_led & Exists(may_follow))


def _awaited_since(now: datetime) -> datetime | None:
    """Return the due time from which runs wait for reports that agents spooled during an outage of the
    server; None if there was no outage lately.

    One time for all agents, since a condition on each run would have every tick read the whole backlog. It is
    that of the oldest record which waits in a spool, as the agents say.
    """
    back_at = heartbeats.back_at(heartbeats.SCHEDULER)
    if back_at is None or now >= back_at + DELIVERY:
        return None
    if now < back_at + GRACE:
        return _LONG_AGO
    delivering = ReporterStatus.objects.filter(seen_at__gt=now - SILENT_AFTER, spool_oldest_at__isnull=False)
    return min((time for status in delivering if (time := status.oldest_record_at)), default=None)


def extend_leases(now: datetime) -> None:
    """Let agents list their running runs again, after an outage of the server."""
    Run.objects.of_agents().in_flight().update(lease_until=now + LEASE)


def absences(reporters: Collection[str], now: datetime) -> dict[str, str]:
    """Return, by name, why each of *reporters*, all agents, runs nothing; empty if it was seen lately."""
    if not reporters:
        return {}
    columns = ("reporter__name", "seen_at", "policy_status", "assignment_error")
    rows = ReporterStatus.objects.filter(reporter__name__in=reporters).values_list(*columns)
    never = "has never been seen: its agent has not enrolled, or does not run"
    return {name: f"reporter {name} {never}" for name in reporters} | {
        name: _absence(name, now, seen_at, policy, refusal) for name, seen_at, policy, refusal in rows
    }


def _absence(reporter: str, now: datetime, seen_at: datetime, policy: str, refusal: str) -> str:
    if now - seen_at > SILENT_AFTER:
        return f"reporter {reporter} was not seen since {seen_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if policy == PolicyStatus.UNREADABLE:
        return f"reporter {reporter} runs nothing: its site policy is unreadable"
    return f"reporter {reporter} refused its assignment" if refusal else ""
