"""The command ``queue-bounds``: bound the queue wait of each job at its submission; score the bounds."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from forecasting.commands import Subparsers, probability, whole_number
from forecasting.queues.binomial import CONFIDENCE, QUANTILE, min_history
from forecasting.queues.replay import PLAIN_WINDOW, QueueScore, score_queues
from forecasting.reading import swf

DESCRIPTION = """\
Replays the log of a batch system. Bounds the wait of each job at its submission, from what was known then:
the waits of the jobs that had started, and the ages of the waiting jobs."""
EPILOG = """\
FILE.swf is in the Standard Workload Format and may be compressed by gzip; - is standard input.

The output for each queue: the numbers of jobs and of bounded jobs, which need a minimum history of their
queue (59 waits for 95/95); the share of them that waited no longer than their bound; the pinball loss at the
quantile, in seconds, less is better; and the median of the bounds. Beside it are the scores of a plain
quantile of the last waits of the queue."""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "queue-bounds",
        help="score bounds on queue waits",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.swf[.gz]")
    parser.add_argument(
        "--quantile", type=probability, default=QUANTILE, metavar="Q", help="share of jobs (0.95)"
    )
    parser.add_argument(
        "--confidence", type=probability, default=CONFIDENCE, metavar="C", help="of the bound (0.95)"
    )
    parser.add_argument(
        "--window",
        type=_window,
        default=PLAIN_WINDOW,
        metavar="N",
        help=f"of the plain quantile, in jobs ({PLAIN_WINDOW})",
    )
    parser.add_argument("--json", action="store_true", help="print one document instead of a table")


def run(arguments: Namespace) -> int:
    log = swf.read(arguments.file)
    queue_scores = score_queues(log.jobs, arguments.quantile, arguments.confidence, arguments.window)
    if arguments.json:
        print(json.dumps(_document(arguments, log, queue_scores), indent=2, allow_nan=False))
    else:
        print("\n".join(_table(arguments, log, queue_scores)))
    return 0


def _document(arguments: Namespace, log: swf.JobLog, scores: Sequence[QueueScore]) -> dict[str, object]:
    return {
        "quantile": arguments.quantile,
        "confidence": arguments.confidence,
        "least_history": min_history(arguments.quantile, arguments.confidence),
        "plain_window": arguments.window,
        "jobs": len(log.jobs),
        "left_out": log.left_out,
        "queues": [asdict(score) for score in scores],
    }


_NARROWEST = 12


def _table(arguments: Namespace, log: swf.JobLog, scores: Sequence[QueueScore]) -> Iterator[str]:
    yield (
        f"{arguments.file}: {len(log.jobs)} jobs, {log.left_out} lines left out; quantile"
        f" {arguments.quantile:g}, confidence {arguments.confidence:g}; plain quantile of {arguments.window}"
    )
    width = max([_NARROWEST, *(len(score.queue) + 1 for score in scores)])
    yield f"{'':<{width}}{'':>8}{'':>9}  {'bound':^33}  {'plain quantile':^33}"
    figures = f"{'coverage':>9}{'pinball s':>12}{'median s':>12}"
    yield f"{'queue':<{width}}{'jobs':>8}{'bounded':>9}  {figures}  {figures}"
    for score in scores:
        cells = "  ".join(
            f"{_cell(scores_of.coverage, 9, 4)}{_cell(scores_of.pinball_seconds, 12, 1)}"
            f"{_cell(scores_of.median_seconds, 12, 1)}"
            for scores_of in (score.bound, score.plain)
        )
        yield f"{score.queue:<{width}}{score.jobs:>8}{score.bounded:>9}  {cells}"


def _cell(figure: float | None, width: int, places: int) -> str:
    return f"{'-':>{width}}" if figure is None else f"{figure:{width}.{places}f}"


def _window(text: str) -> int:
    if not (size := whole_number(text)):
        raise ArgumentTypeError("expected at least 1 job")
    return size
