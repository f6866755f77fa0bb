"""Quantiles of the values of a series, in which a value weighs less the longer it has been known.

They belong to no forecast. Of run times that overlap and have two modes, the errors of a forecast depend on
the mode that it predicted, but the values do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forecasting.learning.fading import FadingValues
from forecasting.uncertainty.intervals import QUANTILE_LEVELS

Numbers = NDArray[np.float64]

_LEVELS: Numbers = np.array(QUANTILE_LEVELS)


def fading_quantiles(recent: FadingValues, at_seconds: float) -> Numbers | None:
    """Return the quantiles at ``QUANTILE_LEVELS`` of *recent* values for *at_seconds*; None without values.

    The next value is as likely between any two neighbours as these weigh, and outside all values as the
    usual value weighs (for equal weights, the quantiles of Weibull: i / (n + 1)). No quantile is outside the
    range of the values.
    """
    if not len(recent):
        return None
    ascending, _, weights = recent.weighted(at_seconds)
    total = weights.sum()
    usual = (weights @ weights) / total
    below = np.cumsum(weights) + 0.5 * (usual - weights)
    quantiles: Numbers = np.interp(_LEVELS, below / (total + usual), ascending)
    return quantiles
