"""Forecast the predictor to the time asked for, then regress on the last 10 pairs of that and what came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import ExpectedPairedMethod, Pairing
from forecasting.learning.regression import least_squares


@dataclass(slots=True)
class Method(ExpectedPairedMethod):
    """Least squares over the last 10 pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "tsp_lrp_last_10"

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        pairing.keep(shown, value, 10)

    def fitted(self, pairing: Pairing, shown: float) -> float:
        return least_squares(pairing.newest, shown)
