"""Find the stage that causes the fluctuation of a total: the share of each stage in its variance. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from monitor.analysis.performance.describe import require_finite

_ROUNDING = 1e-13  # relative to the largest value: smaller deviations are rounding errors


def variance_shares(stages: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Return by stage cov(stage, total) / var(total), where the total is the sum of all stages.

    The arrays have equal length: value *i* of each is of run *i*. The shares add up to 1. A share is negative
    if a stage is short when the total is long. The result is empty if the total of less than two runs, or a
    constant total, has no variance.

    This is the covariance decomposition of a variance (Euler's allocation of a homogeneous risk measure;
    Tasche: Capital allocation to business units and sub-portfolios: the Euler principle, 2008).

    Raises:
        NotFinite: a value is NaN or infinite.
    """
    names = list(stages)
    if not names or len(stages[names[0]]) < 2:
        return {}
    columns = np.stack([stages[name] for name in names])
    require_finite(columns.ravel())
    largest = np.abs(columns).max()
    if largest == 0:
        return {}
    deviations = columns / largest
    deviations -= deviations.mean(axis=1, keepdims=True)
    total = deviations.sum(axis=0)
    if np.abs(total).max() <= _ROUNDING * len(names):
        return {}
    return dict(zip(names, ((deviations @ total) / (total @ total)).tolist(), strict=True))
