"""Correct a forecast by the innovations of one predictor, and measure the improvement."""

from __future__ import annotations

from dataclasses import dataclass, field

from forecasting.base import LARGEST_VALUE
from forecasting.learning.cadence import Cadence
from forecasting.learning.innovations import Innovation, InnovationTracker
from forecasting.learning.loss_comparison import LossComparison
from forecasting.learning.regression import RidgeSlope
from forecasting.learning.scale import TypicalSize
from forecasting.predictor_values import PredictorValues

LIMIT = 8.0  # usual sizes: the limit of a number, since a straight line is no guide beyond
PENALTY = 10.0  # pairs: after so many a slope is half as steep as the pairs suggest
DECAY = 0.99  # factor of the weight of older pairs at each new pair
REACH = 0.7  # usual sizes
_MIN_TRIALS = 50  # corrections before a predictor may be dropped
_MIN_AGES = 5  # the first ages, which are learned even from stale values


@dataclass(slots=True)
class Predictor:
    """One predictor: its innovations, and the regression of the correction on these innovations alone."""

    regression: RidgeSlope = field(default_factory=lambda: RidgeSlope(PENALTY, DECAY, REACH), init=False)
    record: LossComparison = field(default_factory=LossComparison, init=False)
    _tracker: InnovationTracker = field(default_factory=InnovationTracker, init=False)
    # rows of time and both innovations
    _values: PredictorValues = field(default_factory=PredictorValues, init=False)
    _sizes: list[TypicalSize] = field(default_factory=lambda: [TypicalSize(), TypicalSize()], init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _age: TypicalSize = field(default_factory=TypicalSize, init=False)
    _pairs: int = field(default=0, init=False)

    @property
    def is_dropped(self) -> bool:
        """Whether enough trials have shown that this predictor alone does not improve the forecasts."""
        return self.record.n >= _MIN_TRIALS and self.record.gain <= 0.0

    def observe(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        """Learn the next *value*, which happened at *time_seconds* and became known at *known_at_seconds*."""
        if not self._tracker.fits_scale(value):  # later innovations will be on another scale
            self._values, self._sizes = PredictorValues(), [TypicalSize(), TypicalSize()]
        self._cadence.add(time_seconds)
        self._values.add(known_at_seconds, [time_seconds, *self._tracker.update(value)])

    def innovation(self, at_seconds: float) -> Innovation | None:
        """Return the newest innovation known at *at_seconds*, in usual sizes; None if unknown or too old."""
        row = self._values.newest(at_seconds)
        if not row or self._is_stale(_age_seconds(row, at_seconds)):
            return None
        short_term, long_term = self._sizes
        return Innovation(short_term.standardised(row[1], LIMIT), long_term.standardised(row[2], LIMIT))

    def learn(self, at_seconds: float, correction: float) -> None:
        """Learn the *correction* (actual minus forecast, in usual sizes) of the forecast for *at_seconds*."""
        row = self._values.newest(at_seconds)
        if not row:
            return
        innovation = self.innovation(at_seconds)
        if innovation or self._pairs < _MIN_AGES:
            self._age.add(_age_seconds(row, at_seconds))
            self._pairs += 1
        if innovation:
            self.regression.learn(innovation.short_term, correction)
            for size, number in zip(self._sizes, row[1:], strict=True):
                size.add(number)

    def _is_stale(self, age_seconds: float) -> bool:
        """Return whether the newest value is so old that the next value is overdue."""
        return self._pairs > 0 and age_seconds > 2.0 * self._age.size + self._cadence.typical_seconds


def _age_seconds(row: list[float], at_seconds: float) -> float:
    return max(0.0, min(at_seconds - row[0], LARGEST_VALUE))
