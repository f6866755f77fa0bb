"""Linear regression on a predictor (LRP): a line through all pairs of a probe's and an application's value.

Source: the linear regression between probe and application in the studies of two grids, trained on the full
history; ``lrp_last_10`` and ``lrp_first`` use the other two training sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod


@dataclass(slots=True)
class Method(PairedMethod):
    """Forecasts by least squares over all pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp"
