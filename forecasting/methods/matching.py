"""Quantile mapping: forecast the application's value that has the same rank as the probe's newest value.

Both ranks are among the values so far. The mapping follows a curved relation as well as a straight one, and
stays within the range of the values so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing
from forecasting.learning.regression import same_quantile


@dataclass(slots=True)
class Method(PairedMethod):
    """Forecasts by quantile mapping over the last 100 pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "matching"

    def add_pair(self, pairing: Pairing, predictor_value: float, value: float) -> None:
        pairing.keep(predictor_value, value, 100)

    def fitted(self, pairing: Pairing, predictor_value: float) -> float:
        return same_quantile(pairing.newest, predictor_value)
