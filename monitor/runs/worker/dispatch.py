"""Dispatch claims to the queues of their reporters; runs that take almost no time share a task."""

from __future__ import annotations

import logging
import math
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from monitor.celery import BROKER_REFUSES, app
from monitor.runs.ledger.claim import release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from monitor.runs.ledger.claim import Claim

logger = logging.getLogger(__name__)
MAX_BATCH_RUNS = 20  # runs in one task, which executes them one after the other
MAX_BATCH_SECONDS = 0.2  # the sum of the usual durations of the runs in one task


def dispatch(claims: Iterable[Claim], publish: Callable[[Sequence[Claim]], None] | None = None) -> None:
    """Send *claims* as tasks. When the broker refuses a task, release its claims and all remaining claims.

    *publish* sends the claims of one task, by default to the broker.
    """
    tasks = list(batches(claims))
    for index, task in enumerate(tasks):
        try:
            (publish or _publish)(task)
        except BROKER_REFUSES as error:
            remaining = [claim for task in tasks[index:] for claim in task]
            logger.warning("the broker refused a task, %d runs are released: %s", len(remaining), error)
            release(remaining)
            break


def batches(claims: Iterable[Claim]) -> Iterator[list[Claim]]:
    """Group the *claims* of each queue into tasks, in order.

    Runs that take almost no time share a task, because a task costs more than such a run. A run of unknown
    duration gets a task of its own. So does a run that was claimed before: if such a run kills its executor
    at every attempt, no other runs of its task are lost with it.
    """
    for _, of_queue in groupby(sorted(claims, key=attrgetter("queue")), key=attrgetter("queue")):
        task: list[Claim] = []
        task_seconds = 0.0
        for claim in of_queue:
            claim_seconds = claim.usual_seconds if claim.attempt == 1 else math.inf
            task_seconds += claim_seconds
            if task and (task_seconds > MAX_BATCH_SECONDS or len(task) == MAX_BATCH_RUNS):
                yield task
                task, task_seconds = [], claim_seconds
            task.append(claim)
        yield task


def _publish(claims: Sequence[Claim]) -> None:
    run_ids, slots = [str(claim.run_id) for claim in claims], [claim.slot.isoformat() for claim in claims]
    app.send_task("monitor.tasks.run", (run_ids, slots), queue=claims[0].queue, retry=False)
