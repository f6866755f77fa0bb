"""Linear regression on a predictor, fitted to the last 10 pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing
from forecasting.learning.regression import least_squares


@dataclass(slots=True)
class Method(PairedMethod):
    """Forecasts by least squares over the last 10 pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_last_10"

    def add_pair(self, pairing: Pairing, predictor_value: float, value: float) -> None:
        pairing.keep(predictor_value, value, 10)

    def fitted(self, pairing: Pairing, predictor_value: float) -> float:
        return least_squares(pairing.newest, predictor_value)
