"""Ticks of axes for charts that the server draws: round numbers and round times, few enough to be read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

_STEPS = (
    *(timedelta(seconds=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 90, 180, 365, 730, 1826, 3652)),
)
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_MONTH = timedelta(days=30.44)
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
    step = time_step((end - start).total_seconds(), most)
    pattern = "%Y-%m-%d" if step >= _DAY else "%m-%d %H:%M" if step >= _MINUTE else "%H:%M:%S"
    return [(time, time.astimezone(zone).strftime(pattern)) for time in times_of_step(start, end, step)]


def time_step(span_seconds: float, most: int) -> timedelta:
    """Return the round step of which *span_seconds* have at most *most*."""
    steps = (each for each in _STEPS if span_seconds / each.total_seconds() <= most)
    return next(steps, timedelta(seconds=span_seconds / most))


def times_of_step(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    """Yield the multiples of *step* from *start* to *end*; days begin at midnight UTC, weeks on Monday.

    A step of a month or more is a whole number of months.
    """
    if months := round(step / _MONTH):
        yield from _months(start, end, months)
        return
    first = -(-(start - _MIDNIGHT) // step)
    while (time := _MIDNIGHT + first * step) <= end:
        yield time
        first += 1


def _months(start: datetime, end: datetime, months: int) -> Iterator[datetime]:
    number = 12 * start.year // months * months
    while (time := datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)) <= end:
        if time >= start:
            yield time
        number += months
