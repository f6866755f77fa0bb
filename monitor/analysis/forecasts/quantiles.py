"""Interpolate between the quantiles that are stored (``QUANTILE_LEVELS``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from forecasting.uncertainty.intervals import QUANTILE_LEVELS

LOWEST, HIGHEST = QUANTILE_LEVELS[0], QUANTILE_LEVELS[-1]


def quantile(quantiles: Sequence[float], probability: float) -> float:
    """Interpolate the quantile at *probability* (``LOWEST`` to ``HIGHEST``) linearly between *quantiles*."""
    left, right, share = neighbours(probability)
    low, high = quantiles[left], quantiles[right]
    return low if left == right else low * (1.0 - share) + high * share


def neighbours(probability: float) -> tuple[int, int, float]:
    """Return the indexes of the two levels around *probability*, and its position between them (0 to 1)."""
    right = bisect_left(QUANTILE_LEVELS, probability)
    if QUANTILE_LEVELS[right] == probability:
        return right, right, 0.0
    low, high = QUANTILE_LEVELS[right - 1], QUANTILE_LEVELS[right]
    return right - 1, right, (probability - low) / (high - low)
