"""A cache of a method's newest answer, for repeated calls with the same time; no part of the state."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Cache of one answer, valid until the method learns something. A saved state does not contain it.

    A method has it as a field with ``compare=False`` and clears it whenever it learns. Callers must not
    change the answers.
    """

    __slots__ = ("_answer", "_at_seconds")

    def __init__(self) -> None:
        self._at_seconds = math.nan  # equals no time
        self._answer: T | None = None

    def get(self, at_seconds: float) -> T | None:
        """Return the answer for *at_seconds*, if it is kept."""
        return self._answer if self._at_seconds == at_seconds else None

    def keep(self, at_seconds: float, answer: T) -> T:
        """Keep the *answer* for *at_seconds* instead of any other, and return it."""
        self._at_seconds, self._answer = at_seconds, answer
        return answer

    def clear(self) -> None:
        """Drop the answer: the method may have another one now."""
        self._at_seconds, self._answer = math.nan, None
