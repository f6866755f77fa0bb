"""Compute rates as measurements."""

from __future__ import annotations

from probes.base import Measurement


def bytes_per_second(name: str, size_bytes: float, seconds: float) -> list[Measurement]:
    """Return a list with the rate called *name*; empty if *seconds* is 0 because the clock is too coarse."""
    return [Measurement(name, size_bytes / seconds, "bytes_per_second")] if seconds > 0 else []
