"""Forecast the predictor to the time asked for, then regress: a line through all pairs of what the battery
(``nws``) expected of a probe and what the application showed then.

Source: the hybrids of the studies of two grids; ``tsp_lrp_last_10`` and ``tsp_lrp_first`` are trained on the
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
