"""The result of a benchmark: a ratio to a reference measured in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """*ratio* of the measured value to its reference; *figures* are absolute numbers."""

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
        """Parse the result of ``document``."""
        return cls(**{name: value for name, value in document.items() if name != "holds"})


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that one call of *work* takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def interleaved(first: Callable[[], object], second: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the median seconds of both, called in turn, so that load affects both alike."""
    pairs = [(seconds(first), seconds(second)) for _ in range(times)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)
