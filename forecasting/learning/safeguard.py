"""A safeguard: where a simple forecast has been clearly better than an answer, the simple one replaces it.

Weights of many experts are learned slowly, and a short series may be over before the best of them has most of
the weight. Two forecasts are compared soon. The weight of the simple forecast grows exponentially with the
excess of the answer's loss (Cesa-Bianchi, Lugosi, "Prediction, Learning, and Games", 2006, section 2.2); the
answer has an advantage, so that the simple forecast has no weight where both are about as good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_RATE = 8.0
_DECAY = 0.99  # factor of old losses at each value
_ADVANTAGE = 0.95  # of the answer: the factor of its losses
_LARGEST_LOSS = 10.0  # mean losses: the limit of one loss
_MIN_EVIDENCE = 3.0
_NEGLIGIBLE = 1e-3


@dataclass(slots=True)
class Safeguard:
    """Compares the absolute errors of an answer with those of a simple forecast."""

    _loss: float = field(default=0.0, init=False)  # sum of the answer's losses
    _simple_loss: float = field(default=0.0, init=False)
    _evidence: float = field(default=0.0, init=False)

    def update(self, answer: float, simple: float, value: float) -> None:
        """Learn the actual *value*, for which *answer* and the *simple* forecast had been issued."""
        loss, simple_loss = _ADVANTAGE * abs(answer - value), abs(simple - value)
        if self._evidence > _MIN_EVIDENCE and (usual := self._loss + self._simple_loss):
            largest = _LARGEST_LOSS * usual / (2.0 * self._evidence)
            loss, simple_loss = min(loss, largest), min(simple_loss, largest)
        self._loss = _DECAY * self._loss + loss
        self._simple_loss = _DECAY * self._simple_loss + simple_loss
        self._evidence = _DECAY * self._evidence + 1.0

    def guarded(self, answer: float, simple: float) -> float:
        """Return *answer*, moved towards the *simple* forecast as far as that one has been better."""
        weight = self._weight()
        return answer + weight * (simple - answer) if weight > _NEGLIGIBLE else answer

    def _weight(self) -> float:
        """Return the weight of the simple forecast; it is 0 while that one is not better."""
        if self._simple_loss >= self._loss:
            return 0.0
        excess = (self._loss - self._simple_loss) / max(self._simple_loss, _NEGLIGIBLE * self._loss)
        return math.tanh(_RATE * math.sqrt(self._evidence) * excess / 2.0)
