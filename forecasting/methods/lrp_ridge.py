"""Ridge regression on a predictor: the more pairs, the closer the slope is to the least-squares slope.

Source, on the standardised predictor: Hoerl, Kennard, "Ridge regression", Technometrics 12, 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing

_PENALTY = 10.0  # pairs after which half the slope is used


@dataclass(slots=True)
class Method(PairedMethod):
    """Forecasts by ridge regression over all pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_ridge"

    def fitted(self, pairing: Pairing, predictor_value: float) -> float:
        return pairing.line.at(predictor_value, penalty=_PENALTY)
