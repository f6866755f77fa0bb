"""What was just worked out, for who asks the same again; no part of what a method knows."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """The answer for one time, until something is learned. A state keeps nothing of it.

    A method has it as a field that takes no part in comparisons, forgets it with everything that it learns,
    and hands out only what nobody changes.
    """

    __slots__ = ("_answer", "_at_seconds")

    def __init__(self) -> None:
        self._at_seconds = math.nan  # which is no time that anybody asks about
        self._answer: T | None = None

    def at(self, at_seconds: float) -> T | None:
        """Return the answer for *at_seconds*, if it is the one that is remembered."""
        return self._answer if self._at_seconds == at_seconds else None

    def keep(self, at_seconds: float, answer: T) -> T:
        """Remember the *answer* for *at_seconds* instead of any other, and return it."""
        self._at_seconds, self._answer = at_seconds, answer
        return answer

    def forget(self) -> None:
        """Let the answer go: it may be another one now."""
        self._at_seconds, self._answer = math.nan, None
