"""The coverage and the loss of 95/95 bounds on queue waits in published logs, if these are present."""

from __future__ import annotations

from collections.abc import Iterator

from forecasting.queues.binomial import QUANTILE
from forecasting.queues.replay import QueueScore, score_queues
from forecasting.reading import swf
from tests import realdata
from tests.bench.base import Result


def measure() -> list[Result]:
    absent = realdata.missing(*realdata.QUEUES)
    if absent:
        print(f"queue bounds are not measured: {absent}")
        return []
    return [result for log in realdata.QUEUES for result in _results(log.name.split("-")[0], str(log))]


def _results(machine: str, file: str) -> Iterator[Result]:
    for score in score_queues(swf.read(file).jobs):
        if score.bounded:
            yield from _of_queue(f"{machine} queue {score.queue}", score)


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
