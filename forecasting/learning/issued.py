"""The answers of a method to the runs that have started and are not known yet.

When the value of a run becomes known, the forecast to score is the one that was issued before the run
started: other runs may have ended meanwhile, and the present forecast knows them. Learning from delayed
feedback needs no more than the forecasts issued at the time (Weinberger, Ordentlich, "On delayed prediction
of individual sequences", IEEE Trans. Information Theory 48, 2002; Joulani, Gyorgy, Szepesvari, "Online
learning under delayed feedback", ICML 2013). The number of values learned between the answer and its outcome
is the *overlap*: 0 for runs one after another, many for a burst, whose outcomes are one piece of evidence
rather than many.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.predictor_values import MAX_ROWS, most_dispensable

# Factor of the longest delay at each value: one late outcome does not keep answers forever, and a long run
# after a hundred short ones is still scored.
_FADING = 0.995


class IssuedAnswer(NamedTuple):
    """The numbers of an answer, and how many values were learned since: its *overlap*."""

    numbers: NDArray[np.float64]
    overlap: int


@dataclass(slots=True)
class IssuedAnswers:
    """The answers that were current at the starts of runs still unknown, at most *rows*.

    Of many answers, old ones have longer intervals than new ones.

    Attributes:
        used_until_seconds: when the newest learned value became known.
    """

    rows: int = MAX_ROWS
    used_until_seconds: float = field(default=-math.inf, init=False)
    _learned: int = field(default=0, init=False)
    _longest_seconds: float = field(default=0.0, init=False)  # from the start of a run until it was known
    _known_at: list[float] = field(default_factory=list, init=False)  # from when on an answer was current
    _counts: list[int] = field(default_factory=list, init=False)  # of values learned before the answer
    _answers: list[NDArray[np.float64]] = field(default_factory=list, init=False)

    def is_current(self, time_seconds: float) -> bool:
        """Return whether a run that started at *time_seconds* got the present answer."""
        return time_seconds >= self.used_until_seconds

    def issued(self, time_seconds: float, size: int) -> IssuedAnswer | None:
        """Return the newest answer issued before a run that started at *time_seconds*, of *size* numbers.

        The last numbers are NaN if they are of methods that joined later. None if no answer is that old, or
        if it has more numbers: another version issued it.
        """
        index = bisect_right(self._known_at, time_seconds) - 1
        if index < 0 or len(self._answers[index]) > size:
            return None
        answer = self._answers[index]
        joined_later = size - len(answer)
        if joined_later:
            answer = np.concatenate([answer, np.full(joined_later, np.nan)])
        return IssuedAnswer(answer, self._learned - self._counts[index])

    def keep(self, answer: NDArray[np.float64] | None, time_seconds: float, known_at_seconds: float) -> None:
        """Keep the present *answer* while a value is learned; None if there was none.

        The value is of the run that started at *time_seconds* and became known at *known_at_seconds*.
        """
        if answer is not None:
            self._keep(answer)
        known_at_seconds = max(known_at_seconds, time_seconds, self.used_until_seconds)
        self.used_until_seconds = known_at_seconds
        self._learned += 1
        self._longest_seconds = max(_FADING * self._longest_seconds, known_at_seconds - time_seconds)
        self._drop_old(known_at_seconds - self._longest_seconds)

    def _keep(self, answer: NDArray[np.float64]) -> None:
        if self._known_at and self._known_at[-1] == self.used_until_seconds:  # it was never the newest
            self._counts[-1], self._answers[-1] = self._learned, answer
            return
        self._known_at.append(self.used_until_seconds)
        self._counts.append(self._learned)
        self._answers.append(answer)
        if len(self._known_at) > self.rows:
            self._drop(most_dispensable(self._known_at))

    def _drop_old(self, needed_from_seconds: float) -> None:
        """Drop the answers that only runs before *needed_from_seconds* got; keep the newest answer."""
        while len(self._known_at) > 1 and self._known_at[1] <= needed_from_seconds:
            self._drop(0)

    def _drop(self, index: int) -> None:
        del self._known_at[index], self._counts[index], self._answers[index]


@dataclass(slots=True)
class OutcomeSampling:
    """Thins outcomes that overlap: of n outcomes of one burst, about n to the power 1 - *power* count."""

    power: float = 1.0
    _share: float = field(default=0.0, init=False)

    def counts(self, overlap: int) -> bool:
        """Return whether the next outcome, with *overlap*, counts; without overlap each does."""
        if not overlap:
            return True
        self._share += (1.0 + overlap) ** -self.power
        if self._share < 1.0:
            return False
        self._share -= 1.0
        return True
