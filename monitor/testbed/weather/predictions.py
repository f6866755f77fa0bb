"""Repeat the study's table of predictions with runs drawn from the weather, beside the published table.

Gather and PreCo start together every half hour, as in the second three months of the study. A run counts if
no fault stopped it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from forecasting.base import ForecastMethod, Source
from forecasting.evaluation.metrics import relative_error
from forecasting.evaluation.published_predictions import ERRORS, METRICS
from forecasting.evaluation.study import METHODS, StudyColumn, error_table
from forecasting.methods import lrp_first, tsp_lrp_first
from forecasting.reading.histories import Kind, RunHistory
from forecasting.series import Observation
from monitor.testbed.weather.climate import STEP_SECONDS
from monitor.testbed.weather.figures import Floats
from monitor.testbed.weather.generator import Draws, Weather
from monitor.testbed.weather.profile import TOTALS

HALF_HOUR_STEPS = 9
RUNS = 1500
WARM_UP = 30  # pairs: the first training set of every method
FIRST_PAIRS = (10, 30, 100)  # lengths of a fixed training set
_GATHER, _PRECO = "gather", "preco"
_FIXED: Mapping[str, Callable[[int], ForecastMethod]] = {
    "LRP fixed": lambda first: lrp_first.Method(first=first),
    "TSP+LRP fixed": lambda first: tsp_lrp_first.Method(first=first),
}


@dataclass(frozen=True)
class FixedErrors:
    """Relative errors of the total by the line through the *first* pairs, one for each seed."""

    label: str
    first: int
    errors: Sequence[float]


def predictions(
    profile: str, seeds: Sequence[int], wanted: Sequence[str] = METRICS
) -> list[dict[str, StudyColumn]]:
    """Return the table of the metrics *wanted* for each seed."""
    return [error_table(histories(profile, seed), wanted=wanted, warm_up=WARM_UP) for seed in seeds]


def histories(profile: str, seed: int, runs: int = RUNS) -> list[RunHistory]:
    """Return the histories of the runs that pass, by metric, of *runs* half an hour apart."""
    draws = Weather(profile, seed).draws(runs, HALF_HOUR_STEPS)
    return [
        history
        for metric in METRICS
        for history in (
            _history(draws, _PRECO, "application", metric),
            _history(draws, _GATHER, "probe", metric),
        )
    ]


def _history(draws: Draws, series: str, kind: Kind, metric: str) -> RunHistory:
    stages = draws.preco if series == _PRECO else draws.gather
    totals = draws.preco_total if series == _PRECO else draws.gather_total
    name = metric.removeprefix("stage.").removesuffix(".seconds")
    values: Floats = totals(name) if name in TOTALS else stages[name]
    starts = np.arange(len(values)) * float(HALF_HOUR_STEPS * STEP_SECONDS)
    rows = zip(starts, starts + totals("total"), values, strict=True)
    seen = [Observation(*map(float, row)) for row in rows]
    passed = [each for each, has_passed in zip(seen, draws.passed[series], strict=True) if has_passed]
    return RunHistory("grid", Source(series, metric), kind, passed)


def fixed_errors(profile: str, seeds: Sequence[int]) -> Iterator[FixedErrors]:
    """Yield the errors of the total by fixed training sets of several lengths, which were not published."""
    for label, method in _FIXED.items():
        for first in FIRST_PAIRS:
            yield FixedErrors(
                label, first, [_fixed_error(method(first), histories(profile, seed), first) for seed in seeds]
            )


def _fixed_error(method: ForecastMethod, found: Sequence[RunHistory], first: int) -> float:
    """Return the mean relative error of *method*, by what was known at the start of each run.

    It is scored after its training set, and not before the other methods of the table are.
    """
    application, probe = (history for history in found if history.source.metric == "total.seconds")
    seen: list[tuple[Observation, Source | None]] = [(each, probe.source) for each in probe.observations]
    seen += [(each, None) for each in application.observations]
    waiting = deque(sorted(seen, key=lambda one: (one[0].known_at_seconds, one[1] is None)))
    actual, forecasts = [], []
    for place, run in enumerate(application.observations):
        while waiting and waiting[0][0].known_at_seconds <= run.time_seconds:
            known, source = waiting.popleft()
            if source is None:
                method.learn(known.time_seconds, known.known_at_seconds, known.value)
            else:
                method.observe_predictor(source, known.time_seconds, known.known_at_seconds, known.value)
        if place >= max(first, WARM_UP):
            actual.append(run.value)
            forecasts.append(method.forecast(run.time_seconds).median)
    return relative_error(np.array(actual), np.array(forecasts)) or math.nan


def lines(tables: Sequence[Mapping[str, StudyColumn]], fixed: Iterable[FixedErrors]) -> Iterator[str]:
    """Yield the lines of two tables: the medians of *tables* beside the published errors, and *fixed*."""
    yield f"| percent | {' | '.join(_short(metric) for metric in METRICS)} |"
    yield f"|---|{'---:|' * len(METRICS)}"
    for studied in METHODS:
        errors = [100 * median_error(tables, metric, studied.method) for metric in METRICS]
        published = [ERRORS[studied.method][metric].percent for metric in METRICS]
        cells = [f"{here:.2f} / {there:.2f}" for here, there in zip(errors, published, strict=True)]
        yield f"| {studied.label} | {' | '.join(cells)} |"
    yield ""
    yield "| total by the first pairs | lowest | median | highest |"
    yield "|---|---:|---:|---:|"
    for each in fixed:
        spread = (min(each.errors), median(each.errors), max(each.errors))
        yield f"| {each.label} {each.first} | {' | '.join(f'{100 * error:.2f}' for error in spread)} |"


def median_error(tables: Sequence[Mapping[str, StudyColumn]], metric: str, method: str) -> float:
    """Return the median relative error of *method* over *tables*, which each have runs enough for one."""
    errors = [table[metric].cells[method].relative_error for table in tables]
    return median(error for error in errors if error is not None)


def _short(metric: str) -> str:
    return metric.removeprefix("stage.").removesuffix(".seconds")
