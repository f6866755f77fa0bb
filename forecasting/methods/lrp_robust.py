"""Linear regression on a predictor that a few wild pairs cannot turn: Theil-Sen over the last 31 pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing
from forecasting.learning.regression import theil_sen

_TRAINED_ON = 31
_AT_ONCE = 2  # lines that are drawn anew at a value; of more predictors in turn


@dataclass(slots=True)
class Method(PairedMethod):
    """The median of the slopes between pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_robust"

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        pairing.keep(shown, value, _TRAINED_ON)
        turns = -(-len(self._pairings) // _AT_ONCE)
        if (pairing.n + pairing.number) % turns == 0 or pairing.n <= _TRAINED_ON // 2:
            pairing.height, pairing.slope = theil_sen(pairing.newest)

    def fitted(self, pairing: Pairing, shown: float) -> float:
        return pairing.height + pairing.slope * shown
