"""Rollups, computed at once."""

from __future__ import annotations

import math

from monitor.depot.rollups import worker


def roll_all() -> None:
    """Roll up all dirty hours, however long it takes."""
    while worker.roll(worker.NO_LIMIT, within_seconds=math.inf):
        pass
