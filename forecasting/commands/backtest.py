"""The command ``backtest``: score every method on measured runs."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from typing import NamedTuple

from forecasting import methods
from forecasting.base import ForecastingError
from forecasting.commands import Subparsers, add_warm_up, whole_number
from forecasting.evaluation.priors import Teachers
from forecasting.evaluation.rolling_origin import (
    MethodScores,
    MethodSummary,
    PredictorObservations,
    evaluate,
    summaries,
)
from forecasting.reading import histories
from forecasting.reading.histories import RunHistory

DESCRIPTION = """\
Forecasts each run of each application at its start, by every method, from what was known then, and scores the
forecasts. A value is known when its run has ended. The predictors of an application are the probes of its
group; those of a probe are the other probes of the same metric."""
EPILOG = """\
FILE.csv has the columns group,series,kind,started_at,ended_at,value in any order; kind is application or
probe, times are seconds or RFC 3339. Other columns are ignored, except metric: if a run has several values,
each has a row. Rows may be in any order. FILE.csv may be compressed by gzip; - is standard input.

The output for each method: the numbers of scored forecasts and of abstentions; mean absolute error of the
median and root mean squared error of the mean; mean relative error of the median, with its coefficient of
variation; both errors as ratios to those of the last value; the coverage of the 80 % and 90 % intervals;
their Winkler scores, and that of 90 % as a ratio to the NWS forecast +- 1.645 root mean squared errors;
milliseconds of processor time for each new value. At the end are geometric means of ratios and means of all
other scores over the series."""


class EvaluationTask(NamedTuple):
    """One series to forecast, with the observations of its predictors.

    *names* are the methods to score; the first *warm_up* runs do not count. *teachers* give the series a
    prior; None: it begins with nothing.
    """

    history: RunHistory
    of_predictors: PredictorObservations
    names: Sequence[str]
    warm_up: int
    teachers: Teachers | None = None

    def scores(self) -> list[MethodScores]:
        return evaluate(
            self.history.observations,
            self.of_predictors,
            self.names,
            warm_up=self.warm_up,
            prior=self.teachers.prior(self.history) if self.teachers else None,
        )


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "backtest",
        help="score every method on measured runs",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument("--json", action="store_true", help="print one document instead of tables")
    add_warm_up(parser)
    parser.add_argument(
        "--method",
        action="append",
        choices=methods.names(),
        metavar="NAME",
        help=f"evaluate this one; may be repeated; all by default: {', '.join(methods.names())}",
    )
    parser.add_argument(
        "--prior",
        nargs="?",
        action="append",
        const="",
        metavar="PRIOR.csv",
        help="start each series with the records of others: of PRIOR.csv, taken as known from the beginning;"
        " without a file, of the other series of FILE.csv, from their runs known at its first start",
    )
    parser.add_argument(
        "--of",
        choices=(*histories.KINDS, "all"),
        default="application",
        help="the kind of series to forecast (application)",
    )
    parser.add_argument(
        "--processes",
        type=whole_number,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="series to evaluate at the same time (the number of processors)",
    )


def run(arguments: Namespace) -> int:
    tasks = _tasks(histories.read(arguments.files), arguments)
    scored: list[tuple[RunHistory, list[MethodScores]]] = []
    for task, scores in zip(tasks, all_scores(tasks, arguments.processes), strict=True):
        scored.append((task.history, scores))
        if not arguments.json:
            print("\n".join(_table(task.history, scores)), end="\n\n", flush=True)
    overall = summaries(scores for _, scores in scored)
    if arguments.json:
        print(json.dumps(_document(arguments.warm_up, scored, overall), indent=2, allow_nan=False))
    else:
        print("\n".join(_overall_table(overall, len(scored))))
    return 0


def _tasks(all_histories: Sequence[RunHistory], arguments: Namespace) -> list[EvaluationTask]:
    kinds = histories.KINDS if arguments.of == "all" else (arguments.of,)
    wanted = [history for history in all_histories if history.kind in kinds]
    if not wanted:
        raise ForecastingError(
            f"{' '.join(arguments.files)}: expected a series of kind {arguments.of} (see --of), got none"
        )
    names = list(dict.fromkeys(arguments.method or methods.names()))
    teachers = _teachers(all_histories, arguments.prior)
    return [
        EvaluationTask(
            history,
            histories.predictor_values_for(history, all_histories),
            names,
            arguments.warm_up,
            teachers,
        )
        for history in wanted
    ]


def _teachers(all_histories: Sequence[RunHistory], files: Sequence[str] | None) -> Teachers | None:
    if files is None:
        return None
    named = [file for file in files if file]
    earlier = histories.read(named) if named else []
    return Teachers(earlier, all_histories if len(named) < len(files) else ())


def all_scores(tasks: Sequence[EvaluationTask], processes: int) -> Iterator[list[MethodScores]]:
    """Yield the scores of each task, in the order of *tasks*; compute them in up to *processes* processes."""
    if min(processes, len(tasks)) <= 1:
        yield from map(EvaluationTask.scores, tasks)
        return
    other_children = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(processes, len(tasks)), initializer=_ignore_interrupts)
    try:
        yield from pool.map(EvaluationTask.scores, tasks)
    except BrokenProcessPool:
        hint = "perhaps for lack of memory: fewer --processes need less"
        raise ForecastingError(f"a process that evaluated a series was killed, {hint}") from None
    except BaseException:  # the scores of running evaluations are not needed
        for child in set(multiprocessing.active_children()) - other_children:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ignore interrupts in a child process: the parent process handles an interrupt and ends its children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# heading, field, format
_COLUMNS = (
    ("n", "n", "{:>7d}"),
    ("abst.", "abstained", "{:>6d}"),
    ("MAE", "mae", "{:>11.5g}"),
    ("RMSE", "rmse", "{:>11.5g}"),
    ("rel.err.", "relative_error", "{:>9.2%}"),
    ("CV", "relative_error_variation", "{:>6.2f}"),
    ("MAE/last", "mae_ratio", "{:>9.3f}"),
    ("RMSE/last", "rmse_ratio", "{:>10.3f}"),
    ("in 80%", "coverage_80", "{:>7.3f}"),
    ("in 90%", "coverage_90", "{:>7.3f}"),
    ("Winkler80", "winkler_80", "{:>11.5g}"),
    ("Winkler90", "winkler_90", "{:>11.5g}"),
    ("/simple", "interval_ratio", "{:>8.3f}"),
    ("ms", "ms_per_update", "{:>8.3f}"),
)
_OF_SUMMARIES = {"series", *MethodSummary.__dataclass_fields__}
_NAME = 24


def _table(history: RunHistory, scores: Iterable[MethodScores]) -> Iterator[str]:
    yield f"{history}: {len(history.observations)} runs"
    yield from _lines(_COLUMNS, scores)


def _overall_table(overall: Iterable[MethodSummary], count: int) -> Iterator[str]:
    yield f"All {count} series: geometric means of ratios, means of all else"
    yield from _lines(
        (("series", "series", "{:>7d}"), *(column for column in _COLUMNS if column[1] in _OF_SUMMARIES)),
        overall,
    )


def _lines(
    columns: Sequence[tuple[str, str, str]], rows: Iterable[MethodScores | MethodSummary]
) -> Iterator[str]:
    widths = [len(shape.format(0)) for _, _, shape in columns]
    headings = (f"{name:>{width}}" for (name, _, _), width in zip(columns, widths, strict=True))
    yield f"{'':<{_NAME}}{''.join(headings)}"
    for row in rows:
        cells = (_cell(getattr(row, name), shape) for _, name, shape in columns)
        yield f"{row.method:<{_NAME}}{''.join(cells)}"


def _cell(figure: float | None, shape: str) -> str:
    return f"{'-':>{len(shape.format(0))}}" if figure is None else shape.format(figure)


def _document(
    warm_up: int, scored: Iterable[tuple[RunHistory, list[MethodScores]]], overall: Iterable[MethodSummary]
) -> dict[str, object]:
    return {
        "warm_up": warm_up,
        "series": [
            {
                "group": history.group,
                "series": history.source.series,
                "metric": history.source.metric,
                "kind": history.kind,
                "runs": len(history.observations),
                "methods": {score.method: _figures(score) for score in scores},
            }
            for history, scores in scored
        ],
        "overall": {summary.method: _figures(summary) for summary in overall},
    }


def _figures(scores: MethodScores | MethodSummary) -> dict[str, object]:
    return {name: figure for name, figure in asdict(scores).items() if name != "method"}
