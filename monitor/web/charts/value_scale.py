"""The axis of values of a chart that the server draws: its unit, its limits, its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from monitor.web.charts.axes import number_ticks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_ABOVE = (
    2.5  # the longest axis, in heights of the tallest run: a very wide interval would squeeze the runs
)
_ROOM = 1.06  # of the axis above the highest value
_MOST_TICKS = 7
# By unit of the metric: least value, size and name of the unit of the axis.
_UNITS: Mapping[str, Sequence[tuple[float, float, str]]] = {
    "seconds": ((172_800, 86_400, "d"), (7200, 3600, "h"), (600, 60, "min"), (0, 1, "s")),
    "bytes": ((1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (1e3, 1e3, "kB"), (0, 1, "B")),
    "bytes_per_second": ((1e9, 1e9, "GB/s"), (1e6, 1e6, "MB/s"), (1e3, 1e3, "kB/s"), (0, 1, "B/s")),
    "ratio": ((0, 0.01, "%"),),
}


@dataclass(frozen=True)
class ValueScale:
    """An axis from *low* to *high*, in the units of the metric.

    Attributes:
        size, name: the unit of the labels.
        top, bottom: the part of the height of the chart that it takes.
    """

    low: float
    high: float
    size: float
    name: str
    is_log: bool = False
    top: float = 0.0
    bottom: float = 1.0

    @classmethod
    def from_zero(
        cls,
        unit: str,
        tallest: float,
        needed: float = 0.0,
        *,
        lowest: float = 0.0,
        top: float = 0.0,
        bottom: float = 1.0,
    ) -> ValueScale:
        """Return an axis to *tallest*, or to the *needed* value as far as that leaves *tallest* readable.

        It begins at 0, or at the *lowest* value below.
        """
        size, name = axis_unit(unit, tallest or needed)
        high = max(tallest, min(needed, MOST_ABOVE * tallest) if tallest else needed)
        return cls(min(lowest, 0.0) * _ROOM, high * _ROOM or size, size, name, top=top, bottom=bottom)

    @classmethod
    def logarithmic(cls, unit: str, values: Floats, *, bottom: float = 1.0) -> ValueScale:
        """Return a logarithmic axis of the *values* above 0."""
        positive = values[values > 0]
        if not len(positive):
            return cls.from_zero(unit, 0.0, bottom=bottom)
        size, name = axis_unit(unit, float(positive.max()))
        low, high = float(positive.min()), float(positive.max())
        return cls(low / 1.5, high * 1.5, size, name, is_log=True, bottom=bottom)

    def positions(self, values: Floats) -> Floats:
        """Return the share of the height of the chart above each of *values*, within this axis."""
        if self.is_log:
            low, high = math.log(self.low), math.log(self.high)
            shares = (np.log(np.maximum(values, self.low)) - low) / (high - low)
        else:
            shares = (values - self.low) / (self.high - self.low)
        heights: Floats = self.bottom - (self.bottom - self.top) * np.clip(shares, 0.0, 1.0)
        return heights

    def ticks(self, most: int = _MOST_TICKS) -> Iterator[tuple[float, str]]:
        """Yield position and label of each tick, without its unit."""
        low, high = self.low / self.size, self.high / self.size
        values = _decades(low, high) if self.is_log else number_ticks(low, high, most)
        positions = self.positions(np.array(values) * self.size)
        yield from ((position, f"{value:,g}") for position, value in zip(positions, values, strict=True))


def axis_unit(unit: str, largest: float) -> tuple[float, str]:
    """Return size and name of the unit of an axis up to *largest*."""
    known = _UNITS.get(unit, ((0, 1, unit.replace("_per_", "/")),))
    return next((size, name) for least, size, name in known if largest >= least)


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from *low* to *high*; only the powers if these are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    values = [factor * 10.0**power for power in powers for factor in factors]
    return [value for value in values if low <= value <= high]
