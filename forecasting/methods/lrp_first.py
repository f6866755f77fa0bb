"""Linear regression on a predictor, trained once, on the first pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod, Pairing


@dataclass(slots=True)
class Method(PairedMethod):
    """Least squares over the *first* pairs; while there are fewer, over those."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp_first"

    first: int = 30

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        if pairing.n <= self.first:
            pairing.line.learn(shown, value)
