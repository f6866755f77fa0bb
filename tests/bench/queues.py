"""The coverage and the loss of 95/95 bounds on queue waits in published logs, if these are present.

Besides the logs as published: each with a job added that never starts; the first jobs of one log divided
into queues by their requests, with such a job and without; and the time of an update and of a bound.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from forecasting.queues.binomial import QUANTILE
from forecasting.queues.bounds import QueueBounds
from forecasting.queues.queue_state import QueuedJob
from forecasting.queues.replay import QueueScore, score_queues
from forecasting.reading import swf
from forecasting.reading.swf import LoggedJob
from tests import realdata
from tests.bench.base import Result

DIVIDED = 40_000  # jobs of the log that has one queue
TIMED = 4000
UPDATE_SECONDS, BOUND_SECONDS = 0.3e-3, 50e-6


def measure() -> list[Result]:
    absent = realdata.missing(*realdata.QUEUES)
    if absent:
        print(f"queue bounds are not measured: {absent}")
        return []
    ctc, hpc2n = (swf.read(str(log)).jobs for log in realdata.QUEUES)
    divided = [replace(job, job=replace(job.job, queue=_queue_by_request(job))) for job in hpc2n[:DIVIDED]]
    logs = {
        "CTC": ctc,
        "HPC2N": hpc2n,
        "CTC, a job of queue 3 never starts": with_stuck_job(ctc, "3"),
        "HPC2N divided": divided,
        "HPC2N divided, a short job never starts": with_stuck_job(divided, "short"),
        "HPC2N divided, a long job never starts": with_stuck_job(divided, "long"),
    }
    results = [result for name, jobs in logs.items() for result in _results(name, jobs)]
    return [*results, *_seconds(ctc[:TIMED])]


def with_stuck_job(jobs: Sequence[LoggedJob], queue: str) -> list[LoggedJob]:
    """Return *jobs* and a job of *queue*, submitted after a twentieth of the time, that never starts."""
    first = min(job.job.submitted_seconds for job in jobs)
    last = max(job.left_queue_seconds for job in jobs)
    submitted_seconds = first + 0.05 * (last - first)
    number = 1 + max(job.job.number for job in jobs)
    stuck = QueuedJob(number, submitted_seconds, queue, "stuck", 4.0, 36_000.0)
    return [*jobs, LoggedJob(stuck, last - submitted_seconds, 0.0, withdrawn=True)]


def _queue_by_request(logged: LoggedJob) -> str:
    hours, processors = (logged.job.requested_seconds or 0.0) / 3600.0, logged.job.processors or 1.0
    if hours > 24.0:
        return "long"
    if processors <= 2.0:
        return "serial"
    return "short" if hours <= 4.0 else "wide"


def _results(name: str, jobs: Sequence[LoggedJob]) -> Iterator[Result]:
    for score in score_queues(jobs):
        if score.bounded:
            yield from _of_queue(f"{name}, queue {score.queue}", score)


def _of_queue(queue: str, score: QueueScore) -> Iterator[Result]:
    bound, plain = score.bound, score.plain
    if (
        bound.coverage is None
        or bound.pinball_seconds is None
        or not plain.coverage
        or not plain.pinball_seconds
    ):
        raise AssertionError(f"{queue}: {score.bounded} bounds have no scores")
    yield Result(
        f"{queue}: waits within bounds",
        bound.coverage,
        QUANTILE,
        "higher",
        {"jobs": float(score.bounded), "of the plain quantile": plain.coverage},
    )
    yield Result(
        f"{queue}: pinball loss / plain quantile's",
        bound.pinball_seconds / plain.pinball_seconds,
        1.0,
        "lower",
        {
            "loss, s": bound.pinball_seconds,
            "plain, s": plain.pinball_seconds,
            "median bound, s": bound.median_seconds or 0.0,
        },
    )


def _seconds(jobs: Sequence[LoggedJob]) -> Iterator[Result]:
    """Yield the processor time of an update (a job submitted and started) and of a bound, from one state."""
    machine = QueueBounds()
    began = time.process_time()
    for logged, later in itertools.pairwise(jobs):
        machine.submit(logged.job)
        machine.start(logged.job.number, min(logged.left_queue_seconds, later.job.submitted_seconds))
    update_seconds = (time.process_time() - began) / len(jobs)
    began = time.process_time()
    for logged in jobs:
        machine.bound(replace(logged.job, submitted_seconds=jobs[-1].job.submitted_seconds))
    bound_seconds = (time.process_time() - began) / len(jobs)
    for name, taken, limit in (
        ("update", update_seconds, UPDATE_SECONDS),
        ("bound from kept state", bound_seconds, BOUND_SECONDS),
    ):
        yield Result(
            f"queue bounds, {name}: processor time / limit",
            taken / limit,
            1.0,
            "lower",
            {"microseconds": 1e6 * taken},
        )
