"""Rates as measurements."""

from __future__ import annotations

from probes.base import Measurement


def bytes_per_second(name: str, size_bytes: float, seconds: float) -> list[Measurement]:
    """Return the rate as a list of one; an empty list if the clock was too coarse to measure *seconds*."""
    return [Measurement(name, size_bytes / seconds, "bytes_per_second")] if seconds > 0 else []
