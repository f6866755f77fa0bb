"""Rolling origin: what would have been forecast of each run when it started, from what was known then.

Nothing is chosen, fitted or scaled by what came later; that no value is used before it was known is the
``Forecaster``'s promise, which it keeps here as it does live.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import NDArray

from forecasting.base import Abstained, Source
from forecasting.evaluation import metrics
from forecasting.series import Forecaster, Observation
from forecasting.uncertainty.intervals import lower_tail

LEVELS = (0.8, 0.9)
WARM_UP = 40
SIMPLE_LEVEL = 0.9

Column = NDArray[np.float64]
PredictorValues = Sequence[tuple[Source, Observation]]


@dataclass(frozen=True)
class Trail:
    """What one method said of each run of a series in the order in which they started; NaN where it
    abstained. *quantiles* by probability."""

    method: str
    truth: Column
    median: Column
    mean: Column
    quantiles: Mapping[float, Column]
    update_seconds: float  # of the processor, for each value of the series and what was heard since the last

    def interval(self, level: float) -> tuple[Column, Column]:
        tail = lower_tail(level)
        return self.quantiles[tail], self.quantiles[_upper(tail)]


@dataclass(frozen=True)
class Score:
    """How good one method was on one series; None where a figure has nothing to stand on.

    Absolute and relative errors are those of the median, squared ones those of the mean. Ratios are to the
    last value's errors over the same runs. *interval_ratio* is the Winkler score of the 90 % interval to that
    of the NWS MAE pick +- 1.645 times the root mean square of its errors before.
    """

    method: str
    n: int
    abstained: int
    mae: float | None
    rmse: float | None
    relative_error: float | None
    relative_error_variation: float | None
    mae_ratio: float | None
    rmse_ratio: float | None
    coverage_80: float | None
    coverage_90: float | None
    winkler_80: float | None
    winkler_90: float | None
    interval_ratio: float | None
    ms_per_update: float


def rolling_origin(
    method: str,
    observations: Sequence[Observation],
    heard: PredictorValues = (),
    *,
    levels: Sequence[float] = LEVELS,
    floor: float | None = None,
    clock: Callable[[], float] = time.process_time,
) -> Trail:
    """Return what *method* says of each of *observations*, having heard of other sources what was known."""
    forecaster = Forecaster(method)
    for source, observation in heard:
        forecaster.observe(_known_after_it_began(observation), source)
    for observation in observations:
        forecaster.observe(_known_after_it_began(observation))
    tails = list(map(lower_tail, levels))
    probabilities = [*tails, *map(_upper, tails)]
    said, spent_seconds = [], 0.0
    ordered = sorted(observations, key=lambda one: one.time_seconds)
    for observation in ordered:
        began = clock()
        forecaster.learn_until(observation.time_seconds)
        spent_seconds += clock() - began
        said.append(_said(forecaster, observation.time_seconds, probabilities, floor))
    columns = np.array(said, dtype=np.float64).reshape(len(said), 2 + len(probabilities)).T
    return Trail(
        method,
        np.array([one.value for one in ordered], dtype=np.float64),
        columns[0],
        columns[1],
        dict(zip(probabilities, columns[2:], strict=True)),
        spent_seconds / forecaster.used if forecaster.used else 0.0,
    )


def _known_after_it_began(observation: Observation) -> Observation:
    """*observation*, which no forecast for the time when its run started knows, though by its clock the run
    took no time."""
    earliest = math.nextafter(observation.time_seconds, math.inf)
    return replace(observation, known_at_seconds=max(observation.known_at_seconds, earliest))


def _said(
    forecaster: Forecaster, at_seconds: float, probabilities: Sequence[float], floor: float | None
) -> list[float]:
    try:
        forecast = forecaster.forecast(at_seconds, probabilities=probabilities, floor=floor)
    except Abstained:
        return [math.nan] * (2 + len(probabilities))
    return [forecast.median, forecast.mean, *(forecast.quantiles[one] for one in probabilities)]


def _upper(tail: float) -> float:
    return round(1.0 - tail, 12)


@dataclass(frozen=True)
class Yardstick:
    """What every method of a series is held against: forecasts and intervals that anybody can make."""

    last_value: Trail
    battery: Trail

    def score(self, trail: Trail, warm_up: int = WARM_UP) -> Score:
        """The figures of *trail* but for its first *warm_up* runs, and those where nobody answers."""
        counted = np.arange(len(trail.truth)) >= warm_up
        answered = np.isfinite(trail.median)
        judged = counted & answered & np.isfinite(self.last_value.median) & np.isfinite(self.battery.median)
        truth, median, mean = (column[judged] for column in (trail.truth, trail.median, trail.mean))
        usual = self.last_value.median[judged]
        rmse = metrics.root_mean_squared_error(truth, mean)
        ends = {level: _within(trail.interval(level), judged) for level in LEVELS}
        scores_80, scores_90 = (
            metrics.forecast_scores(truth, median, *ends[level], level=level, last_value=usual)
            for level in LEVELS
        )
        simple = _within(_simple_interval(self.battery, SIMPLE_LEVEL), judged)
        return Score(
            method=trail.method,
            n=len(truth),
            abstained=int((counted & ~answered).sum()),
            mae=scores_80.mean_absolute_error,
            rmse=rmse,
            relative_error=scores_80.relative_error,
            relative_error_variation=metrics.relative_error_variation(truth, median),
            mae_ratio=scores_80.mean_absolute_scaled_error,
            rmse_ratio=_ratio(rmse, metrics.root_mean_squared_error(truth, usual)),
            coverage_80=scores_80.coverage,
            coverage_90=scores_90.coverage,
            winkler_80=scores_80.winkler_score,
            winkler_90=scores_90.winkler_score,
            interval_ratio=_ratio(
                scores_90.winkler_score, metrics.winkler_score(truth, *simple, SIMPLE_LEVEL)
            ),
            ms_per_update=1000.0 * trail.update_seconds,
        )


@dataclass(frozen=True)
class Summary:
    """One method over the *series* on which it answered at all: geometric means of ratios, means of the rest.

    A figure that no series has is None.
    """

    method: str
    series: int
    abstained: int
    relative_error: float | None
    mae_ratio: float | None
    rmse_ratio: float | None
    coverage_80: float | None
    coverage_90: float | None
    interval_ratio: float | None
    ms_per_update: float


def judge(
    observations: Sequence[Observation],
    heard: PredictorValues,
    names: Iterable[str],
    *,
    warm_up: int = WARM_UP,
) -> list[Score]:
    """How good the methods *names* are on a series, having heard of other sources what was known.

    Of a series without negative values it is taken as known that it never has any, as of durations and rates.
    """
    floor = 0.0 if all(one.value >= 0.0 for one in observations) else None
    trails: dict[str, Trail] = {}
    for name in dict.fromkeys((*names, "last_value", "nws")):
        trails[name] = rolling_origin(name, observations, heard, floor=floor)
    yardstick = Yardstick(trails["last_value"], trails["nws"])
    return [yardstick.score(trails[name], warm_up) for name in names]


def summaries(series: Iterable[Iterable[Score]]) -> list[Summary]:
    """One for each method, in the order of the first series."""
    found: dict[str, list[Score]] = {}
    for scores in series:
        for score in scores:
            found.setdefault(score.method, []).append(score)
    return [_summary(method, scores) for method, scores in found.items()]


def _summary(method: str, scores: Sequence[Score]) -> Summary:
    return Summary(
        method=method,
        series=sum(score.n > 0 for score in scores),
        abstained=sum(score.abstained for score in scores),
        relative_error=_mean(score.relative_error for score in scores),
        mae_ratio=geometric_mean(score.mae_ratio for score in scores),
        rmse_ratio=geometric_mean(score.rmse_ratio for score in scores),
        coverage_80=_mean(score.coverage_80 for score in scores),
        coverage_90=_mean(score.coverage_90 for score in scores),
        interval_ratio=geometric_mean(score.interval_ratio for score in scores),
        ms_per_update=fmean(score.ms_per_update for score in scores),
    )


def _mean(figures: Iterable[float | None]) -> float | None:
    there = [figure for figure in figures if figure is not None]
    return fmean(there) if there else None


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Of those that are there; zero if one is."""
    there = [ratio for ratio in ratios if ratio is not None]
    if not there:
        return None
    return math.exp(sum(map(math.log, there)) / len(there)) if all(there) else 0.0


def _simple_interval(trail: Trail, level: float) -> tuple[Column, Column]:
    """As errors that are normal and all alike would have it; the first forecasts have none before them."""
    misses = np.abs(np.nan_to_num(trail.truth - trail.median))
    scale = misses.max(initial=0.0) or 1.0
    squares = np.cumsum(np.square(misses / scale))
    known = np.cumsum(np.isfinite(trail.median))
    before = np.concatenate([[0.0], squares[:-1] / np.maximum(known[:-1], 1)])
    reach = NormalDist().inv_cdf(1.0 - lower_tail(level)) * scale * np.sqrt(before)
    return trail.median - reach, trail.median + reach


def _ratio(figure: float | None, measure: float | None) -> float | None:
    return figure / measure if figure is not None and measure else None


def _within(ends: tuple[Column, Column], judged: NDArray[np.bool_]) -> tuple[Column, Column]:
    return ends[0][judged], ends[1][judged]
