"""Which claims share a task, and what happens when the broker refuses one."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError
from redis.exceptions import ResponseError

from monitor.models import Reporter, Run
from monitor.models.run import State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import Claim, claim_due
from monitor.runs.worker.dispatch import MAX_BATCH_RUNS, MAX_BATCH_SECONDS, batches, dispatch
from tests.monitor.builders import asked_for, noops

UNKNOWN = math.inf
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HALF, LONG = MAX_BATCH_SECONDS / 2, 60.0
TINY = MAX_BATCH_SECONDS / MAX_BATCH_RUNS / 10


def claim(usual_seconds: float, *, queue: str = "home", attempt: int = 1) -> Claim:
    return Claim(uuid.uuid4(), NOON, attempt, queue, usual_seconds)


@pytest.mark.parametrize(
    ("usual_seconds", "tasks"),
    [
        ([], []),
        ([UNKNOWN], [1]),
        ([UNKNOWN, UNKNOWN], [1, 1]),
        ([UNKNOWN, TINY, TINY, UNKNOWN, TINY], [1, 2, 1, 1]),
        ([LONG, LONG, TINY], [1, 1, 1]),
        ([TINY, LONG, TINY], [1, 1, 1]),
        ([HALF, HALF], [2]),  # exactly the longest task
        ([HALF, HALF, TINY], [2, 1]),
        ([HALF, HALF * 1.01, HALF * 0.9], [1, 2]),
        ([MAX_BATCH_SECONDS, TINY], [1, 1]),
        ([TINY] * MAX_BATCH_RUNS, [MAX_BATCH_RUNS]),
        ([TINY] * (2 * MAX_BATCH_RUNS + 1), [MAX_BATCH_RUNS, MAX_BATCH_RUNS, 1]),
        ([0.0] * (MAX_BATCH_RUNS + 1), [MAX_BATCH_RUNS, 1]),
    ],
)
def test_runs_share_a_task_up_to_a_number_and_a_duration(
    usual_seconds: Sequence[float], tasks: Sequence[int]
) -> None:
    claims = [claim(seconds) for seconds in usual_seconds]
    grouped = list(batches(claims))
    assert [len(task) for task in grouped] == tasks
    assert [claim for task in grouped for claim in task] == claims  # in their order


def test_runs_of_different_reporters_never_share_a_task_and_keep_their_order() -> None:
    claims = [claim(TINY, queue=queue) for queue in ("b", "a", "b", "a", "c")]
    assert list(batches(claims)) == [
        [claims[1], claims[3]],
        [claims[0], claims[2]],
        [claims[4]],
    ]


def test_a_run_that_was_claimed_before_gets_a_task_of_its_own() -> None:
    """It may be what killed its executor, or came after a run that took unexpectedly long."""
    claims = [claim(TINY), claim(TINY, attempt=2), claim(TINY, attempt=3), claim(TINY), claim(TINY)]
    assert [len(task) for task in batches(claims)] == [1, 1, 1, 2]


def claimed(count: int, directory: Path, now: datetime) -> list[Claim]:
    """Return *count* claims; the last four are of runs that share tasks, two and two."""
    series = noops(count, directory)
    Reporter.objects.update(capacity=count)
    for each_series in series:
        asked_for(each_series, now)
    claims = claim_due(now)
    short = [Claim(claim.run_id, claim.slot, claim.attempt, claim.queue, HALF) for claim in claims[-4:]]
    return [*claims[:-4], *short]


@pytest.mark.parametrize("refusal", [OperationalError("connection refused"), ResponseError("OOM")])
def test_when_the_broker_refuses_a_task_all_remaining_claims_are_released(
    db: None, tmp_path: Path, noon: datetime, refusal: Exception
) -> None:
    claims = claimed(6, tmp_path, noon)
    taken: list[Claim] = []

    def publish(task: Sequence[Claim]) -> None:
        if len(task) > 1:
            raise refusal
        taken.extend(task)

    dispatch(claims, publish=publish)
    assert taken == claims[:2]
    left = Run.objects.filter(pk__in=[claim.run_id for claim in claims[2:]])
    assert set(left.values_list("state", "attempt")) == {(State.EXPECTED, 0)}
    runs = Run.objects.filter(pk__in=[claim.run_id for claim in taken])
    assert set(runs.values_list("state", "attempt")) == {(State.CLAIMED, 1)}


def test_a_released_run_is_claimed_again_as_its_first_attempt(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    def refuse(_: Sequence[Claim]) -> None:
        raise OperationalError("connection refused")

    dispatch(claimed(4, tmp_path, noon), publish=refuse)
    assert [claim.attempt for claim in claim_due(noon)] == [1, 1, 1, 1]


def test_a_run_that_starts_although_its_task_seemed_refused_goes_on(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    claims = claimed(4, tmp_path, noon)

    def accept_and_time_out(task: Sequence[Claim]) -> None:
        began = [claim.run_id for claim in task]
        transitions.move(Run.objects.all(), began, State.RUNNING, cause="its task arrived")
        raise OperationalError("timed out")

    dispatch(claims, publish=accept_and_time_out)
    assert Run.objects.filter(state=State.RUNNING, attempt=1).count() == 2
    assert Run.objects.filter(state=State.EXPECTED, attempt=0).count() == 2
