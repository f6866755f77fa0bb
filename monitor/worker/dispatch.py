"""Hand claims to their reporters' queues; runs that are over in no time travel together."""

from __future__ import annotations

import logging
import math
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from monitor.celery import BROKER_REFUSES, app
from monitor.ledger.claim import release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from monitor.ledger.claim import Claim

logger = logging.getLogger(__name__)
MAX_BATCH_RUNS = 20  # runs of one task, at most: they run one after the other
MAX_BATCH_SECONDS = 0.2  # that they take in all, at most, as those before them did


def dispatch(claims: Iterable[Claim], publish: Callable[[Sequence[Claim]], None] | None = None) -> None:
    """Send *claims*, few to a task. When the broker does not take one, all that are left are released."""
    tasks = list(batches(claims))
    for place, task in enumerate(tasks):
        try:
            (publish or _publish)(task)
        except BROKER_REFUSES as error:
            left = [one for task in tasks[place:] for one in task]
            logger.warning("the broker does not take it, %d runs are put back: %s", len(left), error)
            release(left)
            break


def batches(claims: Iterable[Claim]) -> Iterator[list[Claim]]:
    """*claims* by queue, in their order; those that go together as one.

    One whose time is not known goes alone. What a task costs is more than what such runs do.

    So does one that was claimed before: it may be what killed its executor, or came after one that took
    unexpectedly long. Others would fall silent with it, again and again, until they are given up.
    """
    for _, of_queue in groupby(sorted(claims, key=attrgetter("queue")), key=attrgetter("queue")):
        task: list[Claim] = []
        seconds = 0.0
        for one in of_queue:
            takes_seconds = one.usual_seconds if one.attempt == 1 else math.inf
            seconds += takes_seconds
            if task and (seconds > MAX_BATCH_SECONDS or len(task) == MAX_BATCH_RUNS):
                yield task
                task, seconds = [], takes_seconds
            task.append(one)
        yield task


def _publish(claims: Sequence[Claim]) -> None:
    told = [str(one.run_id) for one in claims], [one.slot.isoformat() for one in claims]
    app.send_task("monitor.tasks.run", told, queue=claims[0].queue, retry=False)
