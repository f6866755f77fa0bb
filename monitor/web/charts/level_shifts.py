"""Find the positions at which the level of a sequence of values changes (binary segmentation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_SIDE = 8  # values before and after a shift
NEAR = 24  # values on each side that are compared: further away there may be other levels
MOST_SHIFTS = 12
_CLEAR = 3.0  # the least distance of two levels, in standard deviations around them
_LEAST_CHANGE = 0.1  # ... and as a share of the level
_SIGMA = 1.4826  # standard deviations of a normal distribution in its median absolute deviation


def level_shifts(values: Sequence[float]) -> list[int]:
    """Return the positions of the first value of each new level, in order, at most ``MOST_SHIFTS``.

    The whole is split where the squared deviations from the two means become least, then each part again, as
    long as the medians of the values near the split differ clearly: single outliers are no shift, nor is a
    drift. Where there are more shifts, the clearest remain.
    """
    array = np.asarray(values, np.float64)
    found: list[tuple[float, int]] = []
    parts = [(0, len(array))]
    while parts:
        first, last = parts.pop()
        split = _split(array[first:last])
        if split is not None:
            clarity, at = split
            found.append((clarity, first + at))
            parts += [(first, first + at), (first + at, last)]
    clearest = sorted(found, reverse=True)[:MOST_SHIFTS]
    return sorted(position for _, position in clearest)


def _split(part: Floats) -> tuple[float, int] | None:
    """Return how clear the best split of *part* is, and its position; None without a clear one."""
    n = len(part)
    if n < 2 * LEAST_SIDE:
        return None
    before = np.arange(1, n)
    sums = np.cumsum(part - part.mean())[:-1]
    gains = sums**2 * n / (before * (n - before))  # by how much the squared deviations fall
    allowed = slice(LEAST_SIDE - 1, n - LEAST_SIDE)
    at = LEAST_SIDE + int(np.argmax(gains[allowed]))
    left, right = part[max(at - NEAR, 0) : at], part[at : at + NEAR]
    levels = np.median(left), np.median(right)
    distance = abs(levels[1] - levels[0])
    noise = max(_deviation(left, levels[0]), _deviation(right, levels[1]))
    if distance <= max(_CLEAR * noise, _LEAST_CHANGE * abs(levels[0])):
        return None
    return float(distance / noise) if noise else float("inf"), at


def _deviation(values: Floats, level: np.floating) -> float:
    return float(_SIGMA * np.median(np.abs(values - level)))
