"""The newest answer of a method, for callers that ask again about the same time; no part of its state."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """The answer for one time, until the method learns something. A state does not keep it.

    A method has it as a field with ``compare=False``, clears it with everything that it learns, and returns
    only answers that no caller changes.
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
