"""Claim due runs for their reporters. Due times live in PostgreSQL; the broker only carries run ids."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit, try_lock_until_commit
from monitor.models import Reporter, Run, Series
from monitor.models.run import State
from monitor.models.series import REPORTED_PROBE
from monitor.runs.ledger import transitions
from monitor.runs.ledger.admission import Skip, Wait, decide, rules
from monitor.runs.ledger.admission_context import load_context, load_due_runs

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from monitor.runs.ledger.admission import DueRun

MAX_DUE_RUNS = 500  # read per reporter and claim
EXTRA_DUE_RUNS = 20  # runs read in addition to the free capacity, because the first ones may have to wait
_DUE_FIELDS = ("series", "slot", "due_at", "wait_until", "trigger", "forced", "reason", "attempt", "state")
_LAST_RUNS = """
SELECT wanted.series, extract(epoch FROM last.ended_at - last.started_at)::float8
FROM unnest(%s::bigint[]) AS wanted (series), LATERAL (
    SELECT started_at, ended_at, state FROM monitor_run
    WHERE series_id = wanted.series AND slot <= %s AND started_at IS NOT NULL AND ended_at IS NOT NULL
    ORDER BY slot DESC LIMIT 1) AS last
WHERE last.state = 'passed'
"""


@dataclass(frozen=True)
class Claim:
    """A run that its reporter is to start; *attempt* distinguishes this claim from earlier claims of the run.

    *usual_seconds* is the duration of the last run of the series; infinite if that run did not pass.
    """

    run_id: uuid.UUID
    slot: datetime
    attempt: int
    queue: str
    usual_seconds: float = math.inf


def lease_until(now: datetime) -> datetime:
    """Return the end of a lease that is granted or renewed at *now*."""
    return now + timedelta(seconds=settings.GRIDCAST_LEASE_SECONDS)


@transaction.atomic
def claim_due(now: datetime) -> list[Claim]:
    """Claim the due runs of Celery workers that the admission rules let start, oldest first.

    Concurrent callers are serialised by an advisory lock; rows that another transaction holds are skipped.
    """
    lock_until_commit(AdvisoryLock.CLAIM)
    reporters = list(Reporter.objects.workers())
    return _claim(
        reporters, [run for reporter in reporters for run in _due(reporter, now, MAX_DUE_RUNS)], now
    )


@transaction.atomic
def claim_freed(now: datetime) -> list[Claim]:
    """Claim runs for the capacity that ended runs have freed, without waiting for the next tick.

    Reporters with less than an eighth of their capacity free are left out: a claim costs the same for one run
    as for many. Returns an empty list while another process is claiming.
    """
    if not try_lock_until_commit(AdvisoryLock.CLAIM):
        return []
    reporters = list(Reporter.objects.workers())
    busy = Counter(
        Run.objects.by_reporters().in_flight().order_by().values_list("series__reporter", flat=True)
    )
    free = {reporter.pk: reporter.capacity - busy[reporter.pk] for reporter in reporters}
    due: list[Run] = []
    for reporter in reporters:
        capacity = free[reporter.pk]
        if capacity > 0 and capacity * 8 >= reporter.capacity:
            due += _due(reporter, now, min(capacity + EXTRA_DUE_RUNS, MAX_DUE_RUNS))
    return _claim(reporters, due, now) if due else []


@transaction.atomic
def claim_one(run: Run, now: datetime) -> Claim | None:
    """Claim *run*, whatever the admission rules say.

    Return None if *run* is no longer expected, if its series has a run in flight, or if no worker runs the
    series.
    """
    lock_until_commit(AdvisoryLock.CLAIM)
    if Run.objects.filter(series=run.series_id).in_flight().exists():
        return None
    by_worker = Series.objects.filter(pk=run.series_id).exclude(probe=REPORTED_PROBE)
    reporter = Reporter.objects.workers().filter(series__in=by_worker).first()
    if reporter is None or not _set_claimed([run], now):
        return None
    return Claim(run.pk, run.slot, run.attempt + 1, reporter.queue)


def release(claims: Iterable[Claim]) -> None:
    """Move the runs of *claims* back to ``expected``, because they could not be dispatched.

    The attempt of the claim does not count.
    """
    by_attempt: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_attempt[claim.attempt].append(claim)
    for attempt, released in by_attempt.items():
        transitions.move(
            Run.objects.filter(attempt=attempt, state=State.CLAIMED),
            [claim.run_id for claim in released],
            State.EXPECTED,
            cause="the broker refused it",
            slots=[claim.slot for claim in released],
            attempt=F("attempt") - 1,
        )


def _due(reporter: Reporter, now: datetime, at_most: int) -> Iterator[Run]:
    """Lock and yield the oldest due runs of *reporter*.

    First come runs without ``wait_until``, then runs with ``wait_until``, which a rule may delay for long. At
    most *at_most* runs of each sort are read, so that delayed runs never hide the others.
    """
    due = Run.objects.by_reporters().filter(series__reporter=reporter).due(now).runnable().order_by("due_at")
    for may_wait_long in (False, True):
        runs = due.filter(wait_until__isnull=not may_wait_long)
        yield from runs.only(*_DUE_FIELDS).select_for_update(skip_locked=True, of=("self",))[:at_most]


def _claim(reporters: Iterable[Reporter], due: Iterable[Run], now: datetime) -> list[Claim]:
    """Claim the runs of *due* that the rules admit; skip the other runs, or record why they wait."""
    runs = {run.pk: run for run in sorted(due, key=lambda run: (run.due_at, run.pk))}
    admitted: list[DueRun] = []
    rejected: dict[Skip | Wait, list[Run]] = defaultdict(list)
    for due_run, verdict in decide(load_due_runs(list(runs.values())), load_context(now), rules.in_order()):
        if verdict is None:
            admitted.append(due_run)
        else:
            rejected[verdict].append(runs[due_run.run])
    for verdict, rejected_runs in rejected.items():  # one statement for all runs with the same verdict
        record_rejection(verdict, rejected_runs)
    _set_claimed([runs[due_run.run] for due_run in admitted], now)
    queues = {reporter.name: reporter.queue for reporter in reporters}
    seconds = _last_durations({runs[due_run.run].series_id for due_run in admitted}, now)
    return [
        Claim(
            due_run.run,
            runs[due_run.run].slot,
            runs[due_run.run].attempt + 1,
            queues[due_run.demand.reporter],
            seconds.get(runs[due_run.run].series_id, math.inf),
        )
        for due_run in admitted
    ]


def record_rejection(verdict: Skip | Wait, runs: Sequence[Run]) -> None:
    """End *runs* as skipped if *verdict* is Skip; else record why they wait, and until when they may wait."""
    if isinstance(verdict, Skip):
        keys, slots = [run.pk for run in runs], {run.slot for run in runs}
        transitions.move(
            Run.objects.all(), keys, State.SKIPPED, slots=slots, cause="it was due", reason=verdict.reason
        )
        return
    reason, until = verdict.reason, verdict.until
    changed = [run for run in runs if (run.reason, run.wait_until) != (reason, until)]
    if changed:
        waiting = Run.objects.filter(
            pk__in=[run.pk for run in changed], slot__in={run.slot for run in changed}
        )
        waiting.update(reason=reason, wait_until=until)


def _set_claimed(runs: Collection[Run], now: datetime) -> int:
    return transitions.move(
        Run.objects.all(),
        [run.pk for run in runs],
        State.CLAIMED,
        slots={run.slot for run in runs},
        cause="claimed for its reporter",
        claimed_at=now,
        lease_until=lease_until(now),
        attempt=F("attempt") + 1,
        reason="",
    )


def _last_durations(series: Collection[int], now: datetime) -> dict[int, float]:
    """Return the durations in seconds of the last runs of *series*, by primary key.

    Series whose last run did not pass are absent: a failed run may have ended sooner than the next run will.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST_RUNS, [list(series), now])
        return dict(cursor.fetchall())
