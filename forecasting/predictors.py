"""Corrections of a forecast by the news of a predictor, and how much better they made it."""

from __future__ import annotations

from dataclasses import dataclass, field

from forecasting.choice import Comparison
from forecasting.hearing import Heard
from forecasting.news import Course
from forecasting.regression import Size, Slope

LIMIT = 8.0  # usual sizes of a number that count at most: beyond, a straight line is no guide
PENALTY = 10.0  # pairs that have to be there before a regression is half believed
KEPT = 0.99  # of the weight of older pairs
REACH = 0.7  # usual sizes
_TRIED = 50  # corrections before a predictor may be dropped


@dataclass(slots=True)
class Predictor:
    """One source: what was new in its values, and what that says by itself."""

    alone: Slope = field(default_factory=lambda: Slope(PENALTY, KEPT, REACH), init=False)
    record: Comparison = field(default_factory=Comparison, init=False)
    _course: Course = field(default_factory=Course, init=False)
    _heard: Heard = field(default_factory=Heard, init=False)
    _sizes: list[Size] = field(default_factory=lambda: [Size(), Size()], init=False)

    @property
    def dropped(self) -> bool:
        """Whether it was tried long enough, and by itself did not make the forecasts better."""
        return self.record.n >= _TRIED and self.record.gain <= 0.0

    def hear(self, known_at_seconds: float, value: float) -> None:
        """Take in the next value."""
        if not self._course.fits(value):  # what is kept is in another measure than what will come
            self._heard, self._sizes = Heard(), [Size(), Size()]
        self._heard.add(known_at_seconds, list(self._course.learn(value)))

    def news(self, at_seconds: float) -> tuple[float, float] | None:
        """Return the news of the day and of the month that was known, in usual sizes; None: nothing was."""
        news = self._heard.newest(at_seconds)
        if not news:
            return None
        of_the_day, of_the_month = self._sizes
        return of_the_day.standard(news[0], LIMIT), of_the_month.standard(news[1], LIMIT)

    def learn(self, at_seconds: float, truth: float) -> None:
        """Learn that the forecast for *at_seconds* had to be corrected by *truth*, in usual sizes."""
        news = self._heard.newest(at_seconds)
        standard = self.news(at_seconds)
        if not news or not standard:
            return
        self.alone.learn(standard[0], truth)
        for size, number in zip(self._sizes, news, strict=True):
            size.add(number)
