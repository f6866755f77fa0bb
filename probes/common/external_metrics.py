"""Metrics whose names come from a program of another monitoring system: untrusted text."""

from __future__ import annotations

import math
import re

from probes.base import Measurement
from probes.grid import Grid

MAX_METRICS = 200  # a report has 256 KiB
_PART_CHARACTERS = 100  # of a name
_NAME_CHARACTERS = 190  # of the 200 that a report takes: a number may come behind
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def safe_name(text: str) -> str:
    """*text* with letters, digits and ``_.-`` only; never empty."""
    return _UNSAFE.sub("_", text)[:_PART_CHARACTERS].strip("_") or "_"


class MeasurementCollector:
    """Metrics with names from outside: made unique, finite and not too many. What is left out is counted."""

    def __init__(self) -> None:
        self._metrics: dict[str, Measurement] = {}
        self._left_out = 0

    def add(self, name: str, value: float, unit: str) -> None:
        """Add one; *name* is safe already. A name that is taken gets a number."""
        if len(self._metrics) >= MAX_METRICS or not math.isfinite(value):
            self._left_out += 1
            return
        unique, number = name[:_NAME_CHARACTERS], 1
        while unique in self._metrics:
            number += 1
            unique = f"{name[:_NAME_CHARACTERS]}.{number}"
        self._metrics[unique] = Measurement(unique, value, unit)

    def collected(self, grid: Grid) -> list[Measurement]:
        """All of them; what was left out is logged."""
        if self._left_out:
            grid.log(
                f"{self._left_out} values were left out: not finite, or more than {MAX_METRICS} metrics",
                "warning",
            )
        return list(self._metrics.values())
