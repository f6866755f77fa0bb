"""Regression on the forecast of a predictor, fitted once, to the first pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import ExpectedPairedMethod, Pairing


@dataclass(slots=True)
class Method(ExpectedPairedMethod):
    """Forecasts by least squares over the first *first* pairs, or over all pairs while there are fewer."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "tsp_lrp_first"

    first: int = 30

    def add_pair(self, pairing: Pairing, predictor_value: float, value: float) -> None:
        if pairing.n <= self.first:
            pairing.line.learn(predictor_value, value)
