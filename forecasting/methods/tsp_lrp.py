"""Regression on the forecast of a predictor: a line through all pairs of the probe's forecast by the battery
(``nws``) and the application's value.

Source: the hybrid methods in the studies of two grids; ``tsp_lrp_last_10`` and ``tsp_lrp_first`` use the
other two training sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import ExpectedPairedMethod


@dataclass(slots=True)
class Method(ExpectedPairedMethod):
    """Least squares over the full history."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "tsp_lrp"
