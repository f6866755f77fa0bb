"""Ticks of axes for charts that the server draws: round numbers and round times, few enough to be read."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo

_STEPS = (
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 90, 180, 365)),
)
_MIDNIGHT = datetime(1970, 1, 5, tzinfo=UTC)  # a Monday


def number_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most *most* + 1 round numbers from *low* to *high*."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(number * step, 12) for number in range(first, last + 1)]


def time_ticks(
    start: datetime, end: datetime, zone: tzinfo = UTC, most: int = 6
) -> list[tuple[datetime, str]]:
    """Return at most *most* + 1 round times from *start* to *end*, with labels in *zone*."""
    step = next((each for each in _STEPS if (end - start) / each <= most), (end - start) / most)
    first = -(-(start - _MIDNIGHT) // step)
    times = []
    while (time := _MIDNIGHT + first * step) <= end:
        times.append(time)
        first += 1
    pattern = "%m-%d %H:%M" if step < timedelta(days=1) else "%Y-%m-%d"
    return [(time, time.astimezone(zone).strftime(pattern)) for time in times]
