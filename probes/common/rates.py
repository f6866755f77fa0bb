"""Rates as metrics."""

from __future__ import annotations

from probes.base import Measurement


def bytes_per_second(name: str, size_bytes: float, seconds: float) -> list[Measurement]:
    """A rate; none where the time was too short for the clock that measured it."""
    return [Measurement(name, size_bytes / seconds, "bytes_per_second")] if seconds > 0 else []
