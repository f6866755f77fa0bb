"""Forecast the predictor to the time asked for, then regress on the first pairs of that and what came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import ExpectedPairedMethod, Pairing


@dataclass(slots=True)
class Method(ExpectedPairedMethod):
    """Least squares over the *first* pairs; while there are fewer, over those."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "tsp_lrp_first"

    first: int = 30

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        if pairing.n <= self.first:
            pairing.line.learn(shown, value)
