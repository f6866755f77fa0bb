"""How good forecasts were that were issued before the truth was known.

Every argument is a sequence of the same length: one entry a forecast, in the order of issue. A figure that
has nothing to stand on (no forecast, only zeros to divide by) is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.base import LARGEST, InvalidNumber
from forecasting.uncertainty.intervals import lower_tail

Numbers = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class TrackRecord:
    """What became of *n* forecasts; *level* is what *coverage* was promised to be."""

    n: int
    level: float
    mean_absolute_error: float | None
    root_mean_squared_error: float | None
    relative_error: float | None
    relative_error_variation: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    winkler_score: float | None


def track_record(
    truth: Numbers, mean: Numbers, lower: Numbers, upper: Numbers, level: float = 0.8
) -> TrackRecord:
    """Return all figures of forecasts with intervals that cover *level*."""
    return TrackRecord(
        n=len(truth),
        level=level,
        mean_absolute_error=mean_absolute_error(truth, mean),
        root_mean_squared_error=root_mean_squared_error(truth, mean),
        relative_error=relative_error(truth, mean),
        relative_error_variation=relative_error_variation(truth, mean),
        mean_absolute_scaled_error=mean_absolute_scaled_error(truth, mean),
        coverage=coverage(truth, lower, upper),
        winkler_score=winkler_score(truth, lower, upper, level),
    )


def mean_absolute_error(truth: Numbers, mean: Numbers) -> float | None:
    """The mean of |truth - mean|, in the unit of the series."""
    happened, expected = _aligned(truth, mean)
    return _average(np.abs(happened - expected))


def root_mean_squared_error(truth: Numbers, mean: Numbers) -> float | None:
    """The root of the mean of (truth - mean) squared, in the unit of the series."""
    happened, expected = _aligned(truth, mean)
    misses = np.abs(happened - expected)
    largest = misses.max(initial=0.0)
    if not largest:
        return _average(misses)
    return float(largest * math.sqrt(np.square(misses / largest).mean()))  # the square alone may be too large


def relative_error(truth: Numbers, mean: Numbers) -> float | None:
    """The mean of |truth - mean| / |truth| over the truths that are not zero."""
    return _average(_relative_errors(truth, mean))


def relative_error_variation(truth: Numbers, mean: Numbers) -> float | None:
    """The coefficient of variation of the relative errors: their standard deviation by their mean."""
    errors = _relative_errors(truth, mean)
    average = _average(errors)
    if not average:
        return None
    return float((errors / average).std())


def pinball_loss(truth: Numbers, quantile: Numbers, probability: float) -> float | None:
    """What a forecast quantile costs on average; least for the true one of *probability*.

    A truth above it costs *probability* times its distance, one below the rest. Source: Koenker, Bassett,
    "Regression quantiles", Econometrica 46 (1978).
    """
    happened, expected = _aligned(truth, quantile)
    missed_by = happened - expected
    return _average(np.maximum(probability * missed_by, (probability - 1.0) * missed_by))


def mean_absolute_scaled_error(truth: Numbers, mean: Numbers) -> float | None:
    """The error relative to forecasting the truth before; below 1 is better than that.

    Both are taken over all forecasts but the first. Source: Hyndman, Koehler, "Another look at measures of
    forecast accuracy", International Journal of Forecasting 22 (2006), with the scale of the same period.
    """
    happened, expected = _aligned(truth, mean)
    own = _average(np.abs(happened - expected)[1:])
    last_value = _average(np.abs(np.diff(happened)))
    return own / last_value if own is not None and last_value else None


def coverage(truth: Numbers, lower: Numbers, upper: Numbers) -> float | None:
    """The share of truths inside their interval, ends included."""
    happened, low, high = _aligned(truth, lower, upper)
    return _average((low <= happened) & (happened <= high))


def winkler_score(truth: Numbers, lower: Numbers, upper: Numbers, level: float = 0.8) -> float | None:
    """The mean width of the intervals, each miss adding its distance times 2 / (1 - *level*); less is better.

    Source: Winkler, "A decision-theoretic approach to interval estimation", JASA 67 (1972).
    """
    happened, low, high = _aligned(truth, lower, upper)
    missed_by = np.maximum(low - happened, 0.0) + np.maximum(happened - high, 0.0)
    return _average(high - low + missed_by / lower_tail(level))


def _relative_errors(truth: Numbers, mean: Numbers) -> NDArray[np.float64]:
    happened, expected = _aligned(truth, mean)
    divisible = happened != 0.0
    with np.errstate(over="ignore"):  # a truth next to nothing
        errors = np.abs(happened - expected)[divisible] / np.abs(happened[divisible])
    return np.asarray(np.minimum(errors, LARGEST))


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
