"""Linear regression on a predictor: a straight line through all pairs of a probe's value and what came then.

Source: linear regression between probe and application of the studies of two grids, trained on the full
history; ``lrp_last_10`` and ``lrp_first`` are its other two training sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forecasting.learning.pairing import PairedMethod


@dataclass(slots=True)
class Method(PairedMethod):
    """Least squares over the full history."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    NAME: ClassVar[str] = "lrp"
