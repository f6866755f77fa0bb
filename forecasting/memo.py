"""A cache of a method's newest answer, for repeated calls with the same time. It is no part of the state."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """A cache of one answer, valid until the method learns. A saved state does not contain the cache.

    A method has the cache as a field with ``compare=False`` and clears it whenever the method learns. Callers
    must not change an answer.
    """

    __slots__ = ("_answer", "_at_seconds")

    def __init__(self) -> None:
        self._at_seconds = math.nan  # equals no time
        self._answer: T | None = None

    def get(self, at_seconds: float) -> T | None:
        """Return the cached answer if it is for *at_seconds*, else None."""
        return self._answer if self._at_seconds == at_seconds else None

    def keep(self, at_seconds: float, answer: T) -> T:
        """Replace the cached answer by *answer* for *at_seconds*; return *answer*."""
        self._at_seconds, self._answer = at_seconds, answer
        return answer

    def clear(self) -> None:
        """Drop the cached answer."""
        self._at_seconds, self._answer = math.nan, None
