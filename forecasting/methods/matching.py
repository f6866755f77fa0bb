"""Distribution mapping: the quantile of an application's values that the probe's value is of the probe's.

It follows a bent relation as well as a straight one, and never leaves what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing
from forecasting.learning.regression import same_quantile


@dataclass(slots=True)
class Method(PairedMethod):
    """Quantile matching over the last 100 pairs."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "matching"

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        pairing.keep(shown, value, 100)

    def fitted(self, pairing: Pairing, shown: float) -> float:
        return same_quantile(pairing.newest, shown)
