"""Collect the metrics of external programs; the names of these metrics are untrusted text."""

from __future__ import annotations

import math
import re

from probes.base import Measurement
from probes.grid import Grid

MAX_METRICS = 200  # to stay below the 256 KiB of a report
_PART_CHARACTERS = 100
_NAME_CHARACTERS = 190  # a report accepts 200; add() may append a number
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def safe_name(text: str) -> str:
    """Return *text* reduced to letters, digits and ``_.-``; never empty."""
    return _UNSAFE.sub("_", text)[:_PART_CHARACTERS].strip("_") or "_"


class MeasurementCollector:
    """Collects at most ``MAX_METRICS`` finite measurements under unique names. Drops and counts the rest."""

    def __init__(self) -> None:
        self._metrics: dict[str, Measurement] = {}
        self._dropped = 0

    def add(self, name: str, value: float, unit: str) -> None:
        """Add a measurement; if *name* (a ``safe_name``) is in use, append a number to the name."""
        if len(self._metrics) >= MAX_METRICS or not math.isfinite(value):
            self._dropped += 1
            return
        unique, number = name[:_NAME_CHARACTERS], 1
        while unique in self._metrics:
            number += 1
            unique = f"{name[:_NAME_CHARACTERS]}.{number}"
        self._metrics[unique] = Measurement(unique, value, unit)

    def collected(self, grid: Grid) -> list[Measurement]:
        """Return the measurements; log the number of dropped measurements."""
        if self._dropped:
            grid.log(
                f"{self._dropped} values dropped: not finite, or more than {MAX_METRICS} metrics",
                "warning",
            )
        return list(self._metrics.values())
