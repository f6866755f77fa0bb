"""Claim due runs for their reporters. Due times live here, in PostgreSQL; the broker only carries run ids."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit, try_lock_until_commit
from monitor.ledger import transitions
from monitor.ledger.admission import Skip, Wait, decide, rules
from monitor.ledger.admission_context import load_context, load_due_runs
from monitor.models import Reporter, Run
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from monitor.ledger.admission import Verdict

MAX_DUE_RUNS = 500  # of a reporter's due runs are looked at together
EXTRA_DUE_RUNS = 20  # more than there is room for: what comes first may have to wait for something else
_LOOKED_AT = ("series", "slot", "due_at", "kept_until", "trigger", "forced", "reason", "attempt", "state")


@dataclass(frozen=True)
class Claim:
    """A run that its reporter is to start; *attempt* tells this claim from earlier ones.

    *usual_seconds* is how long the last run of its series took, infinite unless there is one and it passed.
    """

    run_id: uuid.UUID
    slot: datetime
    attempt: int
    queue: str
    usual_seconds: float = math.inf


def lease_until(now: datetime) -> datetime:
    """Until when an executor that gave a sign of life at *now* is taken to be alive."""
    return now + timedelta(seconds=settings.GRIDCAST_LEASE_SECONDS)


@transaction.atomic
def claim_due(now: datetime) -> list[Claim]:
    """Claim what is due and may begin (``monitor.ledger.admission``), oldest first; what may not waits or is
    skipped.

    Two claimers at once do no harm: one counts the room at a time, and rows that somebody else holds are
    passed over.
    """
    lock_until_commit(AdvisoryLock.CLAIM)
    reporters = list(Reporter.objects.all())
    return _claim(reporters, [run for one in reporters for run in _due(one, now, MAX_DUE_RUNS)], now)


@transaction.atomic
def claim_freed(now: datetime) -> list[Claim]:
    """Claim for the room that runs have left which have ended, instead of waiting for the next tick.

    A reporter of many runs at once gets some together, for each time costs the same. Nothing, where somebody
    else claims already.
    """
    if not try_lock_until_commit(AdvisoryLock.CLAIM):
        return []
    reporters = list(Reporter.objects.all())
    room = _room(reporters)
    enough = [one for one in reporters if room[one.pk] * 8 >= one.capacity and room[one.pk] > 0]
    due = [run for one in enough for run in _due(one, now, min(room[one.pk] + EXTRA_DUE_RUNS, MAX_DUE_RUNS))]
    return _claim(reporters, due, now) if due else []


@transaction.atomic
def claim_one(run: Run, now: datetime) -> Claim | None:
    """Claim this very run, room or not; None if somebody else has it, or its series is busy."""
    lock_until_commit(AdvisoryLock.CLAIM)
    if Run.objects.filter(series=run.series_id).in_flight().exists():
        return None
    queue = Reporter.objects.get(series=run.series_id).queue
    return Claim(run.pk, run.slot, run.attempt + 1, queue) if _mark_claimed([run], now) else None


def release(claims: Iterable[Claim]) -> None:
    """Take back claims that could not be handed over; the attempts do not count."""
    by_attempt: dict[int, list[Claim]] = defaultdict(list)
    for one in claims:
        by_attempt[one.attempt].append(one)
    for attempt, those in by_attempt.items():
        transitions.move(
            Run.objects.filter(attempt=attempt, state=State.CLAIMED),
            [one.run_id for one in those],
            State.EXPECTED,
            cause="the broker did not take it",
            slots=[one.slot for one in those],
            attempt=F("attempt") - 1,
        )


def _due(reporter: Reporter, now: datetime, most: int) -> Iterator[Run]:
    """The oldest, and the oldest of those that are known to wait long, which must not hold up the others."""
    due = Run.objects.filter(series__reporter=reporter).due(now).wanted().order_by("due_at")
    for may_wait_long in (False, True):
        those = due.filter(kept_until__isnull=not may_wait_long)
        yield from those.only(*_LOOKED_AT).select_for_update(skip_locked=True, of=("self",))[:most]


def _room(reporters: Iterable[Reporter]) -> dict[int, int]:
    """By reporter, how many runs more it may have."""
    busy = Counter(Run.objects.in_flight().order_by().values_list("series__reporter", flat=True))
    return {one.pk: one.capacity - busy[one.pk] for one in reporters}


def _claim(reporters: Iterable[Reporter], due: Iterable[Run], now: datetime) -> list[Claim]:
    """Claim those of *due* that may begin; those that may not are skipped, or wait and say why."""
    runs = {run.pk: run for run in sorted(due, key=lambda run: (run.due_at, run.pk))}
    queues = {one.name: one.queue for one in reporters}
    wanted = load_due_runs(list(runs.values()))
    verdicts = {
        one.run: verdict for one, verdict in decide(wanted, load_context(now), rules.load_all().values())
    }
    _tell(runs, verdicts)
    admitted = [one for one in wanted if verdicts[one.run] is None]
    _mark_claimed([runs[one.run] for one in admitted], now)
    usual = _usual_seconds({runs[one.run].series_id for one in admitted}, now)
    return [
        Claim(
            one.run,
            runs[one.run].slot,
            runs[one.run].attempt + 1,
            queues[one.demand.reporter],
            usual.get(runs[one.run].series_id, math.inf),
        )
        for one in admitted
    ]


_LAST_RUNS = """
SELECT wanted.series, extract(epoch FROM last.ended_at - last.started_at)::float8
FROM unnest(%s::bigint[]) AS wanted (series), LATERAL (
    SELECT started_at, ended_at, state FROM monitor_run
    WHERE series_id = wanted.series AND slot <= %s AND started_at IS NOT NULL AND ended_at IS NOT NULL
    ORDER BY slot DESC LIMIT 1) AS last
WHERE last.state = 'passed'
"""


def _usual_seconds(series: Collection[int], now: datetime) -> dict[int, float]:
    """How long the last run of each of *series* took, of those that have one.

    Only if it passed: what failed may have been over sooner than the next will be.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST_RUNS, [list(series), now])
        return dict(cursor.fetchall())


def _tell(runs: Mapping[uuid.UUID, Run], verdicts: Mapping[uuid.UUID, Verdict]) -> None:
    """Put what is against them into the ledger: all with the same verdict together."""
    against: dict[Skip | Wait, list[Run]] = defaultdict(list)
    for key, verdict in verdicts.items():
        if verdict is not None:
            against[verdict].append(runs[key])
    for verdict, those in against.items():
        if isinstance(verdict, Skip):
            _move(those, State.SKIPPED, cause="its time came", reason=verdict.reason)
        else:
            _keep(those, verdict)


def _keep(runs: Sequence[Run], wait: Wait) -> None:
    """Say why they wait, once; a slot that may wait long is not missed meanwhile."""
    untold = {run.pk: run.slot for run in runs if (run.reason, run.kept_until) != (wait.reason, wait.until)}
    if untold:
        those = Run.objects.filter(pk__in=untold.keys(), slot__in=set(untold.values()))
        those.update(reason=wait.reason, kept_until=wait.until)


def _mark_claimed(runs: Collection[Run], now: datetime) -> int:
    return _move(
        runs,
        State.CLAIMED,
        cause="claimed for its reporter",
        claimed_at=now,
        lease_until=lease_until(now),
        attempt=F("attempt") + 1,
        reason="",
    )


def _move(runs: Collection[Run], to: State, **fields: Any) -> int:
    keys, slots = [run.pk for run in runs], {run.slot for run in runs}
    return transitions.move(Run.objects.all(), keys, to, slots=slots, **fields)
