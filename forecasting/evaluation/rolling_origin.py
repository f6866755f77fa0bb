"""Rolling origin: forecast each run from what was known at its start, and score the forecasts.

Later values never choose, fit or scale anything: here, as in service, the ``Forecaster`` uses no value before
the value was known.
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
from forecasting.prior import Prior
from forecasting.series import Forecaster, Observation
from forecasting.uncertainty.intervals import lower_tail

LEVELS = (0.8, 0.9)
WARM_UP = 40
SIMPLE_LEVEL = 0.9

Column = NDArray[np.float64]
PredictorObservations = Sequence[tuple[Source, Observation]]


@dataclass(frozen=True)
class RollingForecasts:
    """The forecasts of one method for the runs of a series, in the order of their starts.

    Forecasts are NaN where the method abstained. *quantiles* has a column of quantiles for each probability.
    """

    method: str
    actual: Column
    median: Column
    mean: Column
    quantiles: Mapping[float, Column]
    update_seconds: float  # mean CPU time to learn one value and the predictor values before it

    def interval(self, level: float) -> tuple[Column, Column]:
        tail = lower_tail(level)
        return self.quantiles[tail], self.quantiles[_upper(tail)]


@dataclass(frozen=True)
class MethodScores:
    """The scores of one method on one series; None for a score that cannot be computed.

    Attributes:
        n: number of scored runs.
        abstained: number of runs without a forecast.
        mae: mean absolute error of the median.
        rmse: root mean squared error of the mean.
        relative_error: mean relative error of the median.
        relative_error_variation: coefficient of variation of the relative errors.
        mae_ratio: *mae* divided by the error of the last value over the same runs.
        rmse_ratio: *rmse* divided by the error of the last value over the same runs.
        interval_ratio: Winkler score of the method's 90 % interval divided by the score of a simple interval.
            The simple interval is the NWS MAE pick +- 1.645 times the root mean square of the pick's earlier
            errors.
        ms_per_update: mean CPU time to learn one value, in milliseconds.
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
    of_predictors: PredictorObservations = (),
    *,
    levels: Sequence[float] = LEVELS,
    floor: float | None = None,
    prior: Prior | None = None,
    clock: Callable[[], float] = time.process_time,
) -> RollingForecasts:
    """Forecast each of *observations* by *method*, from what was known at its start.

    Args:
        of_predictors: the observations of the predictors, each with its source.
        levels: probabilities of the central intervals.
        floor: forecasts below this number are raised to it; None: no limit.
        prior: what other series teach.
        clock: measures the time to learn, in seconds.
    """
    forecaster = Forecaster.started(method, prior)
    for source, observation in of_predictors:
        forecaster.observe(_known_after_start(observation), source)
    for observation in observations:
        forecaster.observe(_known_after_start(observation))
    tails = list(map(lower_tail, levels))
    probabilities = [*tails, *map(_upper, tails)]
    rows, spent_seconds = [], 0.0
    ordered = sorted(observations, key=lambda observation: observation.time_seconds)
    for observation in ordered:
        start = clock()
        forecaster.learn_until(observation.time_seconds)
        spent_seconds += clock() - start
        rows.append(_forecast(forecaster, observation.time_seconds, probabilities, floor))
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), 2 + len(probabilities)).T
    return RollingForecasts(
        method,
        np.array([observation.value for observation in ordered], dtype=np.float64),
        columns[0],
        columns[1],
        dict(zip(probabilities, columns[2:], strict=True)),
        spent_seconds / forecaster.used if forecaster.used else 0.0,
    )


def _known_after_start(observation: Observation) -> Observation:
    """Return *observation*, known only after its start even if its run took 0 seconds by the clock."""
    earliest = math.nextafter(observation.time_seconds, math.inf)
    return replace(observation, known_at_seconds=max(observation.known_at_seconds, earliest))


def _forecast(
    forecaster: Forecaster, at_seconds: float, probabilities: Sequence[float], floor: float | None
) -> list[float]:
    try:
        forecast = forecaster.forecast(at_seconds, probabilities=probabilities, floor=floor)
    except Abstained:
        return [math.nan] * (2 + len(probabilities))
    return [
        forecast.median,
        forecast.mean,
        *(forecast.quantiles[probability] for probability in probabilities),
    ]


def _upper(tail: float) -> float:
    return round(1.0 - tail, 12)


@dataclass(frozen=True)
class Baselines:
    """The simple forecasts and intervals with which the methods are compared on a series."""

    last_value: RollingForecasts
    battery: RollingForecasts

    def score(self, forecasts: RollingForecasts, warm_up: int = WARM_UP) -> MethodScores:
        """Score *forecasts*, except the first *warm_up* runs and runs without a forecast or a baseline."""
        counted = np.arange(len(forecasts.actual)) >= warm_up
        answered = np.isfinite(forecasts.median)
        is_scored = (
            counted & answered & np.isfinite(self.last_value.median) & np.isfinite(self.battery.median)
        )
        actual, median, mean = (
            column[is_scored] for column in (forecasts.actual, forecasts.median, forecasts.mean)
        )
        last_value = self.last_value.median[is_scored]
        rmse = metrics.root_mean_squared_error(actual, mean)
        ends = {level: _within(forecasts.interval(level), is_scored) for level in LEVELS}
        scores_80, scores_90 = (
            metrics.forecast_scores(actual, median, *ends[level], level=level, last_value=last_value)
            for level in LEVELS
        )
        simple = _within(_simple_interval(self.battery, SIMPLE_LEVEL), is_scored)
        return MethodScores(
            method=forecasts.method,
            n=len(actual),
            abstained=int((counted & ~answered).sum()),
            mae=scores_80.mean_absolute_error,
            rmse=rmse,
            relative_error=scores_80.relative_error,
            relative_error_variation=metrics.relative_error_variation(actual, median),
            mae_ratio=scores_80.mean_absolute_scaled_error,
            rmse_ratio=_ratio(rmse, metrics.root_mean_squared_error(actual, last_value)),
            coverage_80=scores_80.coverage,
            coverage_90=scores_90.coverage,
            winkler_80=scores_80.winkler_score,
            winkler_90=scores_90.winkler_score,
            interval_ratio=_ratio(
                scores_90.winkler_score, metrics.winkler_score(actual, *simple, SIMPLE_LEVEL)
            ),
            ms_per_update=1000.0 * forecasts.update_seconds,
        )


@dataclass(frozen=True)
class MethodSummary:
    """The mean scores of one method over all series on which the method has forecasts.

    *series* is the number of these series. Ratios are averaged by the geometric mean, other scores by the
    arithmetic mean. A score that no series has is None. *abstained* is a total.
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


def evaluate(
    observations: Sequence[Observation],
    of_predictors: PredictorObservations,
    names: Iterable[str],
    *,
    warm_up: int = WARM_UP,
    prior: Prior | None = None,
) -> list[MethodScores]:
    """Score the methods *names* on a series, with the observations of its predictors and a *prior*.

    The first *warm_up* runs are not scored. If no observed value is negative, all forecasts are at least 0:
    the series is taken for durations or rates.
    """
    floor = 0.0 if all(observation.value >= 0.0 for observation in observations) else None
    forecasts: dict[str, RollingForecasts] = {}
    for name in dict.fromkeys((*names, "last_value", "nws")):
        forecasts[name] = rolling_origin(name, observations, of_predictors, floor=floor, prior=prior)
    baselines = Baselines(forecasts["last_value"], forecasts["nws"])
    return [baselines.score(forecasts[name], warm_up) for name in names]


def summaries(series: Iterable[Iterable[MethodScores]]) -> list[MethodSummary]:
    """Summarise the scores of each method over all *series*, in the order of methods in the first series."""
    by_method: dict[str, list[MethodScores]] = {}
    for scores in series:
        for score in scores:
            by_method.setdefault(score.method, []).append(score)
    return [_summary(method, scores) for method, scores in by_method.items()]


def _summary(method: str, scores: Sequence[MethodScores]) -> MethodSummary:
    return MethodSummary(
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
    present = [figure for figure in figures if figure is not None]
    return fmean(present) if present else None


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of the *ratios* that are not None; 0 if one of them is 0."""
    present = [ratio for ratio in ratios if ratio is not None]
    if not present:
        return None
    return math.exp(sum(map(math.log, present)) / len(present)) if all(present) else 0.0


def _simple_interval(forecasts: RollingForecasts, level: float) -> tuple[Column, Column]:
    """Return the lower and the upper ends of the intervals of *level* around the medians of *forecasts*.

    Errors are assumed normal. Their variance is the mean square of the earlier errors.
    """
    errors = np.abs(np.nan_to_num(forecasts.actual - forecasts.median))
    scale = errors.max(initial=0.0) or 1.0
    squares = np.cumsum(np.square(errors / scale))
    counts = np.cumsum(np.isfinite(forecasts.median))
    before = np.concatenate([[0.0], squares[:-1] / np.maximum(counts[:-1], 1)])
    reach = NormalDist().inv_cdf(1.0 - lower_tail(level)) * scale * np.sqrt(before)
    return forecasts.median - reach, forecasts.median + reach


def _ratio(score: float | None, baseline: float | None) -> float | None:
    return score / baseline if score is not None and baseline else None


def _within(ends: tuple[Column, Column], is_scored: NDArray[np.bool_]) -> tuple[Column, Column]:
    return ends[0][is_scored], ends[1][is_scored]
