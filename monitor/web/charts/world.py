"""Outlines of land and countries, for maps: ``world.txt`` says where they come from."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("world.txt")
_PER_DEGREE = 10


@dataclass(frozen=True)
class Outline:
    """A closed line around land, or an open one between countries; *points* are (longitude, latitude)."""

    is_land: bool
    points: Sequence[tuple[float, float]]

    def meets(self, west: float, south: float, east: float, north: float) -> bool:
        """Return whether a part of it may lie in this box of degrees."""
        longitudes, latitudes = zip(*self.points, strict=True)
        return not (
            max(longitudes) < west
            or min(longitudes) > east
            or max(latitudes) < south
            or min(latitudes) > north
        )


@functools.cache
def outlines() -> tuple[Outline, ...]:
    """Return all outlines, those of land first."""
    lines = _FILE.read_text(encoding="ascii").splitlines()
    return tuple(_outline(line) for line in lines if not line.startswith("#"))


def _outline(line: str) -> Outline:
    kind, *points = line.split()
    pairs = (point.split(",") for point in points)
    return Outline(kind == "land", [(int(x) / _PER_DEGREE, int(y) / _PER_DEGREE) for x, y in pairs])
