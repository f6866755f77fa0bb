"""``backtest``: how good every method would have been on measured runs."""

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
Forecasts each run of each application at the time when it started, with every method, from what was known
then, and says how far off that was. A value is known when its run had ended, and never when it started. The
probes of a group are what its applications may be predicted from, and of one metric each other."""
EPILOG = """\
FILE.csv has the columns group,series,kind,started_at,ended_at,value in any order; kind is application or
probe, times are seconds or RFC 3339. Further columns are passed over, but for metric: where a run has several
values, each has a row. Rows may be in any order. FILE.csv may be packed by gzip; - is standard input.

What is printed of each method: the forecasts that were judged and those that were abstained from; mean
absolute error of the median and root mean squared error of the mean; mean relative error of the median, with
its coefficient of variation; both errors as ratios to those of the last value; how many truths the intervals
of 80 and 90 % covered; their Winkler scores, and that of 90 % as a ratio to the one of the NWS forecast +-
1.645 root mean squared errors; milliseconds of a processor for each new value. At the end stand geometric
means of ratios and means of all else over the series."""


class Task(NamedTuple):
    """One series to be forecast by *names*."""

    history: RunHistory
    heard: PredictorObservations
    names: Sequence[str]
    warm_up: int

    def scores(self) -> list[MethodScores]:
        return evaluate(self.history.observations, self.heard, self.names, warm_up=self.warm_up)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "backtest",
        help="how good every method would have been",
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
        "--of",
        choices=(*histories.KINDS, "all"),
        default="application",
        help="whose runs are forecast (application)",
    )
    parser.add_argument(
        "--processes",
        type=whole_number,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="series at a time (as many as there are processors)",
    )


def run(arguments: Namespace) -> int:
    tasks = _tasks(histories.read(arguments.files), arguments)
    judged: list[tuple[RunHistory, list[MethodScores]]] = []
    for task, scores in zip(tasks, all_judged(tasks, arguments.processes), strict=True):
        judged.append((task.history, scores))
        if not arguments.json:
            print("\n".join(_table(task.history, scores)), end="\n\n", flush=True)
    overall = summaries(scores for _, scores in judged)
    if arguments.json:
        print(json.dumps(_document(arguments.warm_up, judged, overall), indent=2, allow_nan=False))
    else:
        print("\n".join(_overall_table(overall, len(judged))))
    return 0


def _tasks(found: Sequence[RunHistory], arguments: Namespace) -> list[Task]:
    kinds = histories.KINDS if arguments.of == "all" else (arguments.of,)
    wanted = [history for history in found if history.kind in kinds]
    if not wanted:
        raise ForecastingError(f"{' '.join(arguments.files)}: there is no {arguments.of} in it (see --of)")
    names = list(dict.fromkeys(arguments.method or methods.names()))
    return [Task(one, histories.predictor_values_for(one, found), names, arguments.warm_up) for one in wanted]


def all_judged(tasks: Sequence[Task], processes: int) -> Iterator[list[MethodScores]]:
    """The scores of each of *tasks*, in their order, as soon as they are there."""
    if min(processes, len(tasks)) <= 1:
        yield from map(Task.scores, tasks)
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(processes, len(tasks)), initializer=_leave_interrupts)
    try:
        yield from pool.map(Task.scores, tasks)
    except BrokenProcessPool:
        hint = "for want of memory perhaps: fewer --processes need less"
        raise ForecastingError(f"a process that judged a series was killed, {hint}") from None
    except BaseException:  # nobody will read what is still being judged
        for one in set(multiprocessing.active_children()) - others:
            one.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts() -> None:
    """To who began this process, and ends it: dying of one before he does would look like a defect."""
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
        (("series", "series", "{:>7d}"), *(one for one in _COLUMNS if one[1] in _OF_SUMMARIES)), overall
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
    warm_up: int, judged: Iterable[tuple[RunHistory, list[MethodScores]]], overall: Iterable[MethodSummary]
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
                "methods": {one.method: _figures(one) for one in scores},
            }
            for history, scores in judged
        ],
        "overall": {one.method: _figures(one) for one in overall},
    }


def _figures(one: MethodScores | MethodSummary) -> dict[str, object]:
    return {name: figure for name, figure in asdict(one).items() if name != "method"}
