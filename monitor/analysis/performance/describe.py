"""Describe a column of numbers: location, spread, quantiles and skewness. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

QUANTILE_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


class NotFinite(ValueError):
    """A column has a value that is NaN or infinite; the message names its position."""


@dataclass(frozen=True)
class ColumnDescription:
    """Figures of *n* values, in their unit; a figure that is undefined for so few values is None.

    Attributes:
        stdev: the standard deviation of a sample (divided by n - 1); None if n < 2.
        cv: coefficient of variation, stdev / mean; None if n < 2 or the mean is 0.
        quantiles: by share, interpolated linearly between order statistics (Hyndman and Fan, type 7).
        skewness: adjusted Fisher-Pearson coefficient G1; None if n < 3 or all values are equal.
    """

    n: int
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    stdev: float | None = None
    cv: float | None = None
    quantiles: Mapping[float, float] = field(default_factory=dict)
    skewness: float | None = None


def describe(values: NDArray[np.float64]) -> ColumnDescription:
    """Describe a column of finite *values*, in any order.

    Raises:
        NotFinite: a value is NaN or infinite.
    """
    require_finite(values)
    n = len(values)
    if n == 0:
        return ColumnDescription(0)
    least, most = float(values.min()), float(values.max())
    mean = least if least == most else float(values.mean())
    stdev = standard_deviation(values)
    return ColumnDescription(
        n=n,
        mean=mean,
        min=least,
        max=most,
        stdev=stdev,
        cv=stdev / mean if stdev is not None and mean != 0 else None,
        quantiles=dict(zip(QUANTILE_SHARES, np.quantile(values, QUANTILE_SHARES).tolist(), strict=True)),
        skewness=skewness(values),
    )


def require_finite(values: NDArray[np.float64]) -> None:
    """Raise ``NotFinite`` if one of *values* is NaN or infinite."""
    is_finite = np.isfinite(values)
    if not is_finite.all():
        position = int(np.argmin(is_finite))
        raise NotFinite(f"expected finite values, got {values[position]} at position {position}")


def standard_deviation(values: NDArray[np.float64]) -> float | None:
    """Return the sample standard deviation; exactly 0 if all values are equal, None of less than two."""
    if len(values) < 2:
        return None
    # The mean of equal values may be off by a rounding error.
    return 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1))


def skewness(values: NDArray[np.float64]) -> float | None:
    """Return the adjusted Fisher-Pearson coefficient G1; None if n < 3 or all values are equal.

    G1 = sqrt(n (n - 1)) / (n - 2) * m3 / m2**1.5, with the central moments m2 and m3 divided by n (Joanes and
    Gill: Comparing measures of sample skewness and kurtosis, The Statistician 47, 1998).
    """
    n = len(values)
    if n < 3 or np.ptp(values) == 0:
        return None
    deviations = values - values.mean()
    scaled = deviations / np.abs(deviations).max()
    biased = float((scaled**3).mean() / (scaled**2).mean() ** 1.5)
    return math.sqrt(n * (n - 1)) / (n - 2) * biased
