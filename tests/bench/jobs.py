"""Forecasts of the run times of jobs that overlap, and of series with a short past, on published logs.

Jobs: the series by user of two batch logs, of each the two stretches of 500 runs in which most runs are under
way when the next starts, if that is at least six of them (median); every second of these stretches.
Nothing else chose them. Short series: the first 105 runs of TOKIO, with a prior from the other machine.
Ratios are geometric means over series, as in ``accuracy``.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from forecasting.commands.backtest import EvaluationTask, all_scores
from forecasting.evaluation.priors import Teachers
from forecasting.evaluation.rolling_origin import WARM_UP, MethodScores, geometric_mean
from forecasting.reading.histories import RunHistory
from forecasting.series import Observation
from tests import realdata
from tests.bench.base import Result

METHODS = ("auto", "log_level")
STRETCH = 500
LEAST_RUNS = 150
LEAST_OVERLAP = 6
SHORT_RUNS = 105


def measure() -> list[Result]:
    absent = realdata.missing(*realdata.TOKIO, *realdata.QUEUES)
    if absent:
        print(f"forecasts of jobs are not measured: {absent}")
        return []
    stretches = [stretch for history in realdata.jobs() for stretch in _stretches(history)]
    of_jobs = _scored([EvaluationTask(history, (), METHODS, WARM_UP) for history in stretches[::2]])
    return [*_of_jobs(of_jobs), _of_short()]


Scores = Sequence[dict[str, MethodScores]]


def _of_jobs(series: Scores) -> list[Result]:
    count = {"series": float(len(series))}
    ratios = [
        Result(name, _mean("auto", figure, series), target, "lower", {**count, **_others(figure, series)})
        for name, figure, target in (
            ("jobs that overlap: MAE / last value's", "mae_ratio", 0.825),
            ("jobs that overlap: Winkler 90 % / the simple interval's", "interval_ratio", 0.76),
        )
    ]
    coverage = [
        Result(
            f"jobs that overlap: coverage of {level:.0%}, off by",
            abs(fmean(getattr(scores["auto"], figure) for scores in series) - level),
            0.03,
            "lower",
            {method: fmean(getattr(scores[method], figure) for scores in series) for method in METHODS},
        )
        for figure, level in (("coverage_80", 0.8), ("coverage_90", 0.9))
    ]
    return [*ratios, *coverage]


def _of_short() -> Result:
    histories = realdata.tokio()
    short = [replace(history, observations=history.observations[:SHORT_RUNS]) for history in histories]
    alone = _scored([EvaluationTask(history, (), METHODS, WARM_UP) for history in short])
    taught = _scored(
        [
            EvaluationTask(
                history,
                (),
                ("auto",),
                WARM_UP,
                Teachers([other for other in histories if other.group != history.group]),
            )
            for history in short
        ]
    )
    figures = {"without a prior": _mean("auto", "mae_ratio", alone), **_others("mae_ratio", alone)}
    return Result(
        "105 runs, prior: MAE / last value's", _mean("auto", "mae_ratio", taught), 0.75, "lower", figures
    )


def _stretches(history: RunHistory) -> list[RunHistory]:
    """Return the two stretches of *history* with the highest overlap, if it is enough."""
    runs = history.observations
    cuts = [runs[first : first + STRETCH] for first in range(0, len(runs), STRETCH)]
    overlaps = [(_overlap(cut), -index) for index, cut in enumerate(cuts) if len(cut) >= LEAST_RUNS]
    best = sorted((each for each in overlaps if each[0] >= LEAST_OVERLAP), reverse=True)[:2]
    return [replace(history, observations=cuts[-index]) for _, index in best]


def _overlap(runs: Sequence[Observation]) -> float:
    """Return the median number of earlier runs under way when a run starts; *runs* are sorted by start."""
    ends = sorted(run.known_at_seconds for run in runs)
    return median(count - bisect_right(ends, run.time_seconds) for count, run in enumerate(runs))


def _scored(tasks: Sequence[EvaluationTask]) -> Scores:
    processes = len(os.sched_getaffinity(0))
    return [{score.method: score for score in scores} for scores in all_scores(tasks, processes)]


def _others(figure: str, series: Scores) -> dict[str, float]:
    return {method: _mean(method, figure, series) for method in METHODS[1:]}


def _mean(method: str, figure: str, series: Scores) -> float:
    return geometric_mean(getattr(scores[method], figure) for scores in series) or 0.0
