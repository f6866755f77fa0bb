"""Compare a rate with its own history: is it usual, how variable is it, does it change as time goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # loads its parts when they are used; scipy.stats would take 0.4 s and 45 MiB of each worker
from numpy.typing import NDArray

CONFIDENCE = 0.9
FEWEST = 8  # values for a band and a trend
VARIABLE = 0.2  # relative standard deviation
SMALLEST_CHANGE = 0.1
_MONTH_SECONDS = 30 * 86_400.0
_FULLER = 0.1  # of the capacity

State = Literal["few", "slower", "faster", "variable", "usual"]


@dataclass(frozen=True)
class RateTrend:
    """The relative change for each *step* (30 days, or a tenth of the capacity), with its interval."""

    change: float
    low: float
    high: float

    @property
    def declines(self) -> bool:
        """Return whether the rate falls by a change that matters, and not by chance."""
        return self.high < 0.0 and self.change <= -SMALLEST_CHANGE


@dataclass(frozen=True)
class RateHistory:
    """The *latest* value beside the ones before it.

    *low* and *high* hold nine tenths of the values; *variation* is the relative standard deviation. *by_time*
    is the trend for each month, *by_fullness* that for each tenth of the capacity; None where too few values
    or no differences say nothing.
    """

    n: int
    latest: float
    median: float
    low: float
    high: float
    variation: float
    state: State
    by_time: RateTrend | None
    by_fullness: RateTrend | None


def rate_history(
    times_seconds: Sequence[float], values: Sequence[float], fullness: Sequence[float] | None = None
) -> RateHistory:
    """Describe *values* (positive, in order of time; at least one); NaN in *fullness* is unknown."""
    rates = np.asarray(values, dtype=np.float64)
    low, median, high = (float(value) for value in np.quantile(rates, [0.05, 0.5, 0.95]))
    variation = float(rates.std(ddof=1) / rates.mean()) if len(rates) > 1 else 0.0
    full = None if fullness is None else np.asarray(fullness, dtype=np.float64)
    return RateHistory(
        n=len(rates),
        latest=float(rates[-1]),
        median=median,
        low=low,
        high=high,
        variation=variation,
        state=_state(rates, variation),
        by_time=_trend(np.asarray(times_seconds, dtype=np.float64) / _MONTH_SECONDS, rates),
        by_fullness=None if full is None else _trend(full / _FULLER, rates),
    )


def _state(rates: NDArray[np.float64], variation: float) -> State:
    """Compare the latest rate with the others: outside of their band, and by a change that matters."""
    if len(rates) < FEWEST:
        return "few"
    before, latest = rates[:-1], rates[-1]
    low, median, high = np.quantile(before, [0.05, 0.5, 0.95])
    if latest < low and latest < (1.0 - SMALLEST_CHANGE) * median:
        return "slower"
    if latest > high and latest > (1.0 + SMALLEST_CHANGE) * median:
        return "faster"
    return "variable" if variation > VARIABLE else "usual"


def _trend(steps: NDArray[np.float64], rates: NDArray[np.float64]) -> RateTrend | None:
    """Return the change a step, from a line through the logarithms; None unless *steps* differ enough."""
    known = np.isfinite(steps)
    steps, rates = steps[known], rates[known]
    if len(rates) < FEWEST or float(np.ptp(steps)) < 0.2:
        return None
    slope, error = _line(steps, np.log(rates))
    reach = float(scipy.special.stdtrit(len(rates) - 2, (1.0 + CONFIDENCE) / 2.0)) * error
    return RateTrend(
        *(math.expm1(max(min(value, 50.0), -50.0)) for value in (slope, slope - reach, slope + reach))
    )


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return the slope of the line of least squares, and its standard error."""
    x, y = x - x.mean(), y - y.mean()
    squares = float(x @ x)
    slope = float(x @ y) / squares
    residuals = y - slope * x
    return slope, math.sqrt(float(residuals @ residuals) / (len(x) - 2) / squares)
