"""Scores of forecasts that were issued before the actual values were known.

Every argument is a sequence of the same length, with one entry for each forecast. A score that cannot be
computed (no forecasts, or only zeros to divide by) is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.base import LARGEST_VALUE, InvalidNumber
from forecasting.uncertainty.intervals import lower_tail

Numbers = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class ForecastScores:
    """The scores of *n* forecasts; None for a score that cannot be computed."""

    n: int
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    winkler_score: float | None


def forecast_scores(
    actual: Numbers,
    median: Numbers,
    lower: Numbers,
    upper: Numbers,
    *,
    level: float = 0.8,
    last_value: Numbers | None = None,
) -> ForecastScores:
    """Score the forecasts *median* and the intervals from *lower* to *upper* by the *actual* values.

    An interval should contain the actual value with the probability *level*. *last_value* is the baseline:
    the newest value known when the forecast was issued, NaN if no value was known.
    """
    return ForecastScores(
        n=len(actual),
        mean_absolute_error=mean_absolute_error(actual, median),
        relative_error=relative_error(actual, median),
        mean_absolute_scaled_error=None
        if last_value is None
        else mean_absolute_scaled_error(actual, median, last_value),
        coverage=coverage(actual, lower, upper),
        winkler_score=winkler_score(actual, lower, upper, level),
    )


def mean_absolute_error(actual: Numbers, forecast: Numbers) -> float | None:
    """Return the mean of |actual - forecast|, in the unit of the series."""
    return _average(absolute_errors(actual, forecast))


def root_mean_squared_error(actual: Numbers, forecast: Numbers) -> float | None:
    """Return the root of the mean of (actual - forecast) squared, in the unit of the series."""
    errors = absolute_errors(actual, forecast)
    largest = errors.max(initial=0.0)
    if not largest:
        return _average(errors)
    return float(largest * math.sqrt(np.square(errors / largest).mean()))  # the square alone may overflow


def relative_error(actual: Numbers, forecast: Numbers) -> float | None:
    """Return the mean of |actual - forecast| / |actual| over the actual values that are not zero."""
    errors = relative_errors(actual, forecast)
    return _average(errors[~np.isnan(errors)])


def relative_error_variation(actual: Numbers, forecast: Numbers) -> float | None:
    """Return the coefficient of variation of the relative errors: standard deviation divided by mean."""
    errors = relative_errors(actual, forecast)
    errors = errors[~np.isnan(errors)]
    average = _average(errors)
    if not average:
        return None
    return float((errors / average).std())


def mean_absolute_scaled_error(actual: Numbers, forecast: Numbers, last_value: Numbers) -> float | None:
    """Return the mean absolute error of *forecast* divided by the error of the baseline *last_value*.

    A forecast with a result below 1 beats the baseline. Both means are over the forecasts whose *last_value*
    is not NaN. Source: Hyndman, Koehler, "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22 (2006), with the scale of the same period.
    """
    values, forecasts, last_values = (
        np.asarray(column, dtype=np.float64) for column in (actual, forecast, last_value)
    )
    is_known = np.isfinite(last_values)
    error = mean_absolute_error(values[is_known], forecasts[is_known])
    baseline_error = mean_absolute_error(values[is_known], last_values[is_known])
    return error / baseline_error if error is not None and baseline_error else None


def pinball_loss(actual: Numbers, quantile: Numbers, probability: float) -> float | None:
    """Return the mean pinball loss of *quantile*, forecasts of the quantile of *probability*.

    The true quantile minimises the expected loss. A value above the forecast costs *probability* times its
    distance from the forecast; a value below the forecast costs 1 - *probability* times its distance. Source:
    Koenker, Bassett, "Regression quantiles", Econometrica 46 (1978).
    """
    values, quantiles = _aligned(actual, quantile)
    errors = values - quantiles
    return _average(np.maximum(probability * errors, (probability - 1.0) * errors))


def coverage(actual: Numbers, lower: Numbers, upper: Numbers) -> float | None:
    """Return the share of actual values inside their intervals, ends included."""
    values, low, high = _aligned(actual, lower, upper)
    return _average((low <= values) & (values <= high))


def winkler_score(actual: Numbers, lower: Numbers, upper: Numbers, level: float = 0.8) -> float | None:
    """Return the mean Winkler score of intervals: width, plus a penalty if the actual value is outside.

    The penalty is the distance from the interval times 2 / (1 - *level*). Less is better. Source: Winkler, "A
    decision-theoretic approach to interval estimation", JASA 67 (1972).
    """
    values, low, high = _aligned(actual, lower, upper)
    distances = np.maximum(low - values, 0.0) + np.maximum(values - high, 0.0)
    return _average(high - low + distances / lower_tail(level))


def absolute_errors(actual: Numbers, forecast: Numbers) -> NDArray[np.float64]:
    """Return |actual - forecast| of each forecast."""
    values, forecasts = _aligned(actual, forecast)
    return np.abs(values - forecasts)


def relative_errors(actual: Numbers, forecast: Numbers) -> NDArray[np.float64]:
    """Return |actual - forecast| / |actual| of each forecast, NaN where the actual value is zero."""
    values, forecasts = _aligned(actual, forecast)
    is_zero = values == 0.0
    with np.errstate(over="ignore"):  # an actual value next to zero
        errors = np.abs(values - forecasts) / np.abs(np.where(is_zero, 1.0, values))
    return np.where(is_zero, np.nan, np.minimum(errors, LARGEST_VALUE))


def _aligned(*columns: Numbers) -> list[NDArray[np.float64]]:
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    lengths = [array.shape for array in arrays]
    if len(set(lengths)) != 1:
        raise InvalidNumber(f"expected columns of one length, got {lengths}")
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidNumber("expected finite numbers only")
    return arrays


def _average(numbers: NDArray[np.float64] | NDArray[np.bool_]) -> float | None:
    return float(numbers.mean()) if numbers.size else None
