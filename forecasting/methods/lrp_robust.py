"""Linear regression on a predictor that a few wild pairs cannot turn: Theil-Sen over the last 31 pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.pairing import Paired, Pairing
from forecasting.regression import theil_sen


@dataclass(slots=True)
class Method(Paired):
    """The median of the slopes between pairs."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_robust"

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        pairing.keep(shown, value, 31)

    def fitted(self, pairing: Pairing, shown: float) -> float:
        return theil_sen(pairing.newest, shown)
