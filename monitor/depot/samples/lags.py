"""Compare two metrics: pair their values by time, and correlate them at lags in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.depot.samples import sample_arrays
from monitor.depot.samples.correlation import Correlation, correlation
from monitor.depot.samples.sample_arrays import before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEWEST = 2_000  # values of each metric
LAGS = 24  # in each direction
LEAST_PAIRS = 10
_SECOND = 1_000_000  # microseconds


@dataclass(frozen=True)
class Values:
    """The values of passed runs of a metric, in order of time (microseconds since 1970)."""

    time: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class LagCorrelation:
    """The correlation with the values of the other metric from *seconds* earlier; negative: later."""

    seconds: float
    correlation: Correlation

    @property
    def has_enough_pairs(self) -> bool:
        """Whether the coefficients say more than chance: of very few pairs they are close to 1."""
        return self.correlation.n >= LEAST_PAIRS


@dataclass(frozen=True)
class Regression:
    """The line through pairs with the least squared deviations; *r2*: the share of variance it explains."""

    slope: float
    intercept: float
    r2: float


def newest_values(metric_id: int, start: datetime | None, end: datetime) -> Values:
    """Return at most the ``NEWEST`` values of passed runs from *start* until before *end*."""
    samples = sample_arrays.read(metric_id, start=start, end=before(end), newest=NEWEST)
    return Values(samples["time"], samples["value"])


def paired_at(first: Values, second: Values, lag: int, tolerance: int) -> tuple[Ints, Floats, Floats]:
    """Return times and values of *first*, and for each the latest value of *second* *lag* earlier.

    *lag* and *tolerance* are microseconds. An older value of *second* than *tolerance* by then has no
    pair.
    """
    wanted = first.time - lag
    at = np.searchsorted(second.time, wanted, "right") - 1
    has_one = at >= 0
    has_one[has_one] = wanted[has_one] - second.time[at[has_one]] <= tolerance
    return first.time[has_one], first.value[has_one], second.value[at[has_one]]


def usual_gap(values: Values) -> int:
    """Return the median distance of the values in time; 0 for fewer than two."""
    return int(np.median(np.diff(values.time))) if len(values) > 1 else 0


def correlations(first: Values, second: Values) -> list[LagCorrelation]:
    """Return the correlation at each of ``LAGS`` lags before and after, in steps of *first*'s usual gap."""
    step = max(usual_gap(first), _SECOND)
    tolerance = tolerance_of(first, second)
    return [
        LagCorrelation(
            number * step / _SECOND, correlation(*paired_at(first, second, number * step, tolerance)[1:])
        )
        for number in range(-LAGS, LAGS + 1)
    ]


def tolerance_of(first: Values, second: Values) -> int:
    """Return how old a value may be that is paired: one and a half usual gaps of the slower metric."""
    return max(usual_gap(first), usual_gap(second)) * 3 // 2


def strongest(lags: Sequence[LagCorrelation]) -> LagCorrelation | None:
    """Return the lag with the largest absolute rank correlation; None if no lag has enough pairs for one."""
    defined = [lag for lag in lags if lag.correlation.spearman is not None and lag.has_enough_pairs]
    return max(defined, key=lambda lag: abs(lag.correlation.spearman.value), default=None)  # type: ignore[union-attr]


def regression(x: Floats, y: Floats) -> Regression | None:
    """Return the regression of *y* on *x*; None if *x* is constant."""
    if len(x) < 2 or np.ptp(x) == 0:
        return None
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    residuals = dy - slope * dx
    spread = float(dy @ dy)
    r2 = 1 - float(residuals @ residuals) / spread if spread else 1.0
    return Regression(slope, float(y.mean() - slope * x.mean()), r2)
