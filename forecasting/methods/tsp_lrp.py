"""Regression on the forecast of a predictor: a line through pairs of a probe's forecast and a value.

The pairs are all forecasts of the probe by the battery (``nws``), each with the application's value. Source:
the hybrid methods in the studies of two grids; ``tsp_lrp_last_10`` and ``tsp_lrp_first`` use the other two
training sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import ExpectedPairedMethod


@dataclass(slots=True)
class Method(ExpectedPairedMethod):
    """Forecasts by least squares over all pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "tsp_lrp"
