"""The pause between two attempts to send the same thing."""

from __future__ import annotations

from datetime import timedelta

FIRST_PAUSE = timedelta(seconds=30)  # each pause is four times the one before


def pause_after(failed_attempts: int, *, longest: timedelta = timedelta.max) -> timedelta:
    """Return how long to wait after *failed_attempts* (1 or more), at most *longest*."""
    return min(FIRST_PAUSE * int(4 ** min(failed_attempts - 1, 10)), longest)
