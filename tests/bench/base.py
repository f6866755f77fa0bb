"""What a benchmark says: a ratio against something that was measured in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """*ratio* of what is measured to what it is measured against; *figures* are the absolute numbers."""

    name: str
    ratio: float
    target: float
    better: Literal["higher", "lower"]
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.ratio >= self.target if self.better == "higher" else self.ratio <= self.target

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Result:
        """The inverse of ``document``."""
        return cls(**{name: value for name, value in document.items() if name != "holds"})


def seconds(work: Callable[[], object]) -> float:
    """How long one call of *work* takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def interleaved(first: Callable[[], object], second: Callable[[], object], times: int) -> tuple[float, float]:
    """The median seconds of both, called in turn, so that a busy moment hits both alike."""
    pairs = [(seconds(first), seconds(second)) for _ in range(times)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)
