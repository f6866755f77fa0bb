"""The usual size of numbers, which serves as the unit for further numbers of the same kind."""

from __future__ import annotations

from dataclasses import dataclass

_MIN_RATE = 0.05  # the weight of the newest number in the size, once there are 20
_OUTLYING = 10.0  # usual sizes: the limit of one number
_RESOLUTION = 1e-6  # share of a value: the smallest unit of its errors
_SMALLEST = 1e-300


@dataclass(slots=True)
class TypicalSize:
    """A running mean of absolute numbers, mostly errors, that limits outliers."""

    n: int = 0
    size: float = 0.0  # 0 until a number other than 0 is known

    def add(self, error: float, value: float = 0.0) -> None:
        """Add a finite *error* of any sign; *value* is the magnitude of the number that has the error."""
        self.n += 1
        error = abs(error)
        if self.size:
            largest = _OUTLYING * self.unit(value)
            self.size += max(_MIN_RATE, 1.0 / self.n) * (min(error, largest) - self.size)
        else:
            self.size = error

    def unit(self, value: float = 0.0) -> float:
        """Return the usual size, raised above rounding errors of values of the magnitude *value*; never 0."""
        return max(self.size, _RESOLUTION * abs(value), _SMALLEST)

    def standardised(self, number: float, limit: float) -> float:
        """Return *number* divided by the usual size, within +- *limit*; 0 if no size is known."""
        return max(-limit, min(number / self.size, limit)) if self.size else 0.0
