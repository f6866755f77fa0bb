"""Linear regression on a predictor that resists outliers: Theil-Sen over the last 31 pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing
from forecasting.learning.regression import theil_sen

_TRAINING_PAIRS = 31
_FITS_AT_ONCE = 2  # fits at each value; if there are more predictors, they take turns


@dataclass(slots=True)
class Method(PairedMethod):
    """Forecasts by the line whose slope is the median of the slopes between pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_robust"

    def add_pair(self, pairing: Pairing, predictor_value: float, value: float) -> None:
        pairing.keep(predictor_value, value, _TRAINING_PAIRS)
        turns = -(-len(self._pairings) // _FITS_AT_ONCE)
        if (pairing.n + pairing.number) % turns == 0 or pairing.n <= _TRAINING_PAIRS // 2:
            pairing.height, pairing.slope = theil_sen(pairing.newest)

    def fitted(self, pairing: Pairing, predictor_value: float) -> float:
        return pairing.height + pairing.slope * predictor_value
