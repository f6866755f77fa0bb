"""How long to wait before the next try: exponential with full jitter, and as the server asks."""

from __future__ import annotations

import os
from typing import Callable

_RANDOM_BYTES = 6
_MOST = (1 << 8 * _RANDOM_BYTES) - 1


def jitter(low: float, high: float) -> float:
    """Return a random number between *low* and *high*."""
    part = int.from_bytes(os.urandom(_RANDOM_BYTES), "big") / _MOST
    return low + (high - low) * part


class Backoff:
    """The wait after each failure is random between 0 and a bound, which doubles up to *most_seconds*."""

    def __init__(
        self,
        first_seconds: float,
        most_seconds: float,
        uniform: Callable[[float, float], float] = jitter,
    ) -> None:
        self._first, self._most, self._uniform = first_seconds, most_seconds, uniform
        self._failures = 0

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, retry_after_seconds: float | None = None) -> float:
        """Return the seconds to wait, at least *retry_after_seconds*.

        A random part is added to that: all agents would come back at once.
        """
        bound = min(self._most, self._first * 2.0 ** min(self._failures, 60))
        self._failures += 1
        if retry_after_seconds is None:
            return self._uniform(0.0, bound)
        return retry_after_seconds + self._uniform(0.0, max(self._first, retry_after_seconds / 10))
