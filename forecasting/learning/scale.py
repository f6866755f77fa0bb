"""How large numbers of a kind are as a rule: the measure by which others are large or small."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST_RATE = 0.05  # of the newest in the measure, once there were 20
_OUTLYING = 10.0  # times as large as usual that one counts at most
_RESOLUTION = 1e-6  # of a number: what a miss is at least measured in
_SMALLEST = 1e-300


@dataclass(slots=True)
class Typical:
    """A running mean of absolute values, for misses above all, that a few wild ones cannot carry away."""

    n: int = 0
    size: float = 0.0  # 0 before anything but zeros is known

    def add(self, miss: float, number: float = 0.0) -> None:
        """Take in a finite *miss*, of any sign, where numbers are of the size of *number*."""
        self.n += 1
        miss = abs(miss)
        if self.size:
            most = _OUTLYING * self.unit(number)
            self.size += max(_LEAST_RATE, 1.0 / self.n) * (min(miss, most) - self.size)
        else:
            self.size = miss

    def unit(self, number: float = 0.0) -> float:
        """Return what misses are measured in where numbers are of the size of *number*: never 0."""
        return max(self.size, _RESOLUTION * abs(number), _SMALLEST)

    def standard(self, number: float, limit: float) -> float:
        """Return *number* in usual sizes, at most *limit* of them; 0 where no size is known."""
        return max(-limit, min(number / self.size, limit)) if self.size else 0.0
