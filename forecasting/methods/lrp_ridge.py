"""Linear regression on a predictor with a slope that grows with the number of pairs: ridge regression on the
standardised predictor (Hoerl, Kennard, "Ridge regression", Technometrics 12, 1970).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing

_PENALTY = 10.0  # pairs after which half the slope is used


@dataclass(slots=True)
class Method(PairedMethod):
    """Ridge regression over the full history."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_ridge"

    def fitted(self, pairing: Pairing, predictor_value: float) -> float:
        return pairing.line.at(predictor_value, penalty=_PENALTY)
