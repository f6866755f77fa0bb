"""The accuracy of forecasts on published measurements, as ratios; nothing is measured without the data.

One step ahead, as ``python -m forecasting backtest``: all series of TOKIO, each third of the Azure VM noise
study (which takes ten minutes). Ratios are geometric means over series: of errors to those of the
last value, of Winkler scores of 90 % to that of the NWS forecast +- 1.645 root mean squared errors.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from forecasting.commands.backtest import EvaluationTask, all_scores
from forecasting.evaluation.rolling_origin import WARM_UP, MethodScores, geometric_mean
from forecasting.reading.histories import RunHistory, predictor_values_for
from tests import realdata
from tests.bench.base import Result

METHODS = ("auto", "blend", "nws")
EACH = 3
MANY = 1000  # forecasts: enough to hold a single series to its promise


def measure() -> list[Result]:
    absent = realdata.missing(*realdata.TOKIO, realdata.AZURE)
    if absent:
        print(f"accuracy is not measured: {absent}")
        return []
    tokio, azure = realdata.tokio(), realdata.azure()
    wanted = [*tokio, *azure[::EACH]]
    everywhere = [*_scored(tokio, tokio), *_scored(azure[::EACH], azure)]
    long = [
        scores["auto"]
        for history, scores in zip(wanted, everywhere, strict=True)
        if scores["auto"].n >= MANY and not _is_of_one_value(history)
    ]
    applications = [
        scores for history, scores in zip(tokio, everywhere, strict=False) if history.kind == "application"
    ]
    return [
        _ratio("MAE / last value's, one step ahead", "mae_ratio", 0.74, everywhere, len(tokio)),
        _ratio("RMSE / last value's, one step ahead", "rmse_ratio", 0.78, everywhere, len(tokio)),
        _ratio("MAE / last value's, applications from probes", "mae_ratio", 0.79, applications, 0),
        *_coverage(everywhere, long, "coverage_80", 0.8),
        *_coverage(everywhere, long, "coverage_90", 0.9),
        _ratio("Winkler 90 % / the simple interval's", "interval_ratio", 0.8, everywhere, len(tokio)),
    ]


Scores = Sequence[dict[str, MethodScores]]


def _scored(wanted: Sequence[RunHistory], all_of_them: Sequence[RunHistory]) -> Scores:
    tasks = [
        EvaluationTask(history, predictor_values_for(history, all_of_them), METHODS, WARM_UP)
        for history in wanted
    ]
    processes = len(os.sched_getaffinity(0))
    return [{score.method: score for score in scores} for scores in all_scores(tasks, processes)]


def _ratio(name: str, figure: str, target: float, series: Scores, of_tokio: int) -> Result:
    """Return the ratio of ``auto`` over all *series*: first *of_tokio* of TOKIO, then those of Azure."""

    def mean(method: str, some: Scores) -> float:
        return geometric_mean(getattr(scores[method], figure) for scores in some) or 0.0

    parts = {"TOKIO": series[:of_tokio], "Azure": series[of_tokio:]} if of_tokio else {}
    figures = {part: mean("auto", some) for part, some in parts.items()}
    figures |= {method: mean(method, series) for method in METHODS[1:]}
    return Result(name, mean("auto", series), target, "lower", figures)


def _is_of_one_value(history: RunHistory) -> bool:
    """Tell whether most values are equal: an interval cannot cover less than these."""
    values = [observation.value for observation in history.observations]
    return max(Counter(values).values()) > len(values) / 2


def _coverage(series: Scores, long: Sequence[MethodScores], figure: str, level: float) -> list[Result]:
    figures = {method: [getattr(scores[method], figure) for scores in series] for method in METHODS}
    of_many = [getattr(score, figure) for score in long]
    return [
        Result(
            name=f"coverage of {level:.0%}, off by, mean of series",
            ratio=abs(fmean(figures["auto"]) - level),
            target=0.01,
            better="lower",
            figures={method: fmean(shares) for method, shares in figures.items()},
        ),
        Result(
            name=f"coverage of {level:.0%}, off by, any long series",
            ratio=max(abs(share - level) for share in of_many),
            target=0.025,
            better="lower",
            figures={"series": len(of_many), "least": min(of_many), "most": max(of_many)},
        ),
    ]
