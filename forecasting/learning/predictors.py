"""Corrections of a forecast by the news of a predictor, and how much better they made it."""

from __future__ import annotations

from dataclasses import dataclass, field

from forecasting.base import LARGEST_VALUE
from forecasting.evaluation.choice import Comparison
from forecasting.heard_values import Heard
from forecasting.learning.cadence import Cadence
from forecasting.learning.innovations import Course
from forecasting.learning.regression import Slope
from forecasting.learning.scale import Typical

LIMIT = 8.0  # usual sizes of a number that count at most: beyond, a straight line is no guide
PENALTY = 10.0  # pairs that have to be there before a regression is half believed
KEPT = 0.99  # of the weight of older pairs
REACH = 0.7  # usual sizes
_TRIED = 50  # corrections before a predictor may be dropped
_AGES_TAKEN = 5  # however old it was what was known


@dataclass(slots=True)
class Predictor:
    """One source: what was new in its values, and what that says by itself."""

    alone: Slope = field(default_factory=lambda: Slope(PENALTY, KEPT, REACH), init=False)
    record: Comparison = field(default_factory=Comparison, init=False)
    _course: Course = field(default_factory=Course, init=False)
    _heard: Heard = field(default_factory=Heard, init=False)  # rows of time, news of the day, of the month
    _sizes: list[Typical] = field(default_factory=lambda: [Typical(), Typical()], init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _age: Typical = field(default_factory=Typical, init=False)
    _paired: int = field(default=0, init=False)

    @property
    def dropped(self) -> bool:
        """Whether it was tried long enough, and by itself did not make the forecasts better."""
        return self.record.n >= _TRIED and self.record.gain <= 0.0

    def observe_predictor(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        """Take in the next value."""
        if not self._course.fits(value):  # what is kept is in another measure than what will come
            self._heard, self._sizes = Heard(), [Typical(), Typical()]
        self._cadence.note(time_seconds)
        self._heard.add(known_at_seconds, [time_seconds, *self._course.learn(value)])

    def news(self, at_seconds: float) -> tuple[float, float] | None:
        """Return the news of the day and of the month that was known, in usual sizes; None: nothing was, or
        it was stale."""
        heard = self._heard.newest(at_seconds)
        if not heard or self._is_stale(_age_seconds(heard, at_seconds)):
            return None
        of_the_day, of_the_month = self._sizes
        return of_the_day.standard(heard[1], LIMIT), of_the_month.standard(heard[2], LIMIT)

    def learn(self, at_seconds: float, truth: float) -> None:
        """Learn that the forecast for *at_seconds* had to be corrected by *truth*, in usual sizes."""
        heard = self._heard.newest(at_seconds)
        if not heard:
            return
        news = self.news(at_seconds)
        if news or self._paired < _AGES_TAKEN:
            self._age.add(_age_seconds(heard, at_seconds))
            self._paired += 1
        if news:
            self.alone.learn(news[0], truth)
            for size, number in zip(self._sizes, heard[1:], strict=True):
                size.add(number)

    def _is_stale(self, age_seconds: float) -> bool:
        """Whether it is older than what is usually known, so that a value that was due has not come."""
        return self._paired > 0 and age_seconds > 2.0 * self._age.size + self._cadence.typical_seconds


def _age_seconds(heard: list[float], at_seconds: float) -> float:
    return max(0.0, min(at_seconds - heard[0], LARGEST_VALUE))
