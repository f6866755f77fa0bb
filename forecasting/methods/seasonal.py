"""A level, and what the hour of the day and the weekday add to it (UTC), where the data show that they do.

What a time of day adds is the mean of how far values then were from the level: of the last 20 or so, cut to
what is not wild, and shrunken towards nothing by as much as chance alone could account for: a mean m of
standard error s becomes m / (1 + (s/m)^2). An hour is judged by its neighbours too.

Whether there is a season is decided by forecasts and not by fit: with the effects of hours, of weekdays, or
of both, each value would have been missed by less or more than without. Only where the sum of these gains
is far above what chance makes of it (the statistic of Diebold and Mariano, "Comparing predictive accuracy",
JBES 13, 1995, with old values slowly forgotten) are effects added; elsewhere the answer is the level itself,
which is that of ``decaying``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import Age, Forecast
from forecasting.cadence import Cadence
from forecasting.levels import MeanLevels, MedianLevels

_HOUR_SECONDS = 3600.0
_HOURS = 24
_DAYS = 7
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0

_KEPT = 0.95  # of an effect's evidence at each new value of its time
_REACH = 3.0  # usual misses; a wilder deviation counts as this one
_VARIANCE = 1.5  # of one deviation, about, in squares of the usual miss
_NEIGHBOURS_WEIGHT = 0.5
_KEPT_GAINS = 0.995
_SIGNIFICANT = 2.0  # standard errors; effects that are not there lose, so chance needs more luck than 1 in 44
_LARGEST_GAIN = 3.0  # typical misses: no single value proves a season


@dataclass(slots=True)
class Effects:
    """What each time of a round of times adds to the level."""

    sums: list[float]
    weights: list[float]
    neighbours_weight: float

    @classmethod
    def of(cls, count: int, neighbours_weight: float) -> Effects:
        return cls([0.0] * count, [0.0] * count, neighbours_weight)

    def at(self, index: int, usual: float) -> float:
        """Return what is added at time *index* of the round, where a miss of *usual* is usual."""
        total, weight = self.sums[index], self.weights[index]
        share = self.neighbours_weight
        if share:
            before, after = index - 1, (index + 1) % len(self.sums)
            total += share * (self.sums[before] + self.sums[after])
            weight += share * (self.weights[before] + self.weights[after])
        mean = total / weight if weight else 0.0
        if not mean:
            return 0.0
        doubt = usual / mean
        return mean / (1.0 + _VARIANCE * doubt * doubt / weight)

    def learn(self, index: int, deviation: float) -> None:
        """Take in how far a value was from the level."""
        self.sums[index] = _KEPT * self.sums[index] + deviation
        self.weights[index] = _KEPT * self.weights[index] + 1.0


@dataclass(slots=True)
class Evidence:
    """Whether something makes forecasts better: gains added up, and their squares; both slowly forgotten."""

    gains: float = 0.0
    squares: float = 0.0

    def note(self, gain: float) -> None:
        self.gains = _KEPT_GAINS * self.gains + gain
        self.squares = _KEPT_GAINS * _KEPT_GAINS * self.squares + gain * gain

    @property
    def strength(self) -> float:
        """The gains in standard errors."""
        return self.gains / math.sqrt(self.squares) if self.squares else 0.0


@dataclass(slots=True)
class Season:
    """The effects of hours and weekdays, and the evidence for hours, for weekdays, and for both together."""

    hours: Effects = field(default_factory=lambda: Effects.of(_HOURS, _NEIGHBOURS_WEIGHT), init=False)
    weekdays: Effects = field(default_factory=lambda: Effects.of(_DAYS, 0.0), init=False)
    evidence: list[Evidence] = field(default_factory=lambda: [Evidence(), Evidence(), Evidence()], init=False)

    def effect(self, time_seconds: float, usual: float) -> float:
        """Return what the time adds, where a miss of *usual* is usual: nothing where no season is shown."""
        shown = self._shown()
        return 0.0 if shown is None else self._effects(*_hour_and_weekday(time_seconds), usual)[shown]

    def learn(self, time_seconds: float, deviation: float, usual: float) -> float:
        """Take in how far a value of that time was from the level, and return how much of it is now put down
        to the season."""
        hour, weekday = _hour_and_weekday(time_seconds)
        effects = self._effects(hour, weekday, usual)
        if usual:
            for evidence, effect in zip(self.evidence, effects, strict=True):
                gain = (abs(deviation) - abs(deviation - effect)) / usual
                evidence.note(min(max(gain, -_LARGEST_GAIN), _LARGEST_GAIN))
        reach = _REACH * usual
        self.hours.learn(hour, min(max(deviation, -reach), reach))
        self.weekdays.learn(weekday, min(max(deviation - effects[0], -reach), reach))
        shown = self._shown()
        return 0.0 if shown is None else effects[shown]

    def _effects(self, hour: int, weekday: int, usual: float) -> tuple[float, float, float]:
        """What the hour adds, the weekday, and both."""
        of_hour, of_weekday = self.hours.at(hour, usual), self.weekdays.at(weekday, usual)
        return of_hour, of_weekday, of_hour + of_weekday

    def _shown(self) -> int | None:
        """Which of the effects helps most, if one does."""
        strengths = [evidence.strength for evidence in self.evidence]
        most = max(strengths)
        return strengths.index(most) if most > _SIGNIFICANT else None


@dataclass(slots=True)
class Method:
    """Forecasts the level without seasons, plus what is shown of the season at the time asked about."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = True
    TIMELESS: ClassVar[bool] = False
    VOICES: ClassVar[int] = len(MedianLevels.MEMORIES) + len(MeanLevels.MEMORIES) + 2

    _age: Age = field(default_factory=Age, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _season: Season = field(default_factory=Season, init=False)
    _for_median: MedianLevels = field(default_factory=MedianLevels, init=False)
    _for_mean: MeanLevels = field(default_factory=MeanLevels, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.note(time_seconds, value)
        value = float(value)
        elapsed = self._cadence.note(time_seconds)
        if self._age.n > 1:
            deviation = value - self._for_median.expected(elapsed)
            value -= self._season.learn(time_seconds, deviation, self._for_median.usual_miss)
        self._for_median.update(value, elapsed)
        self._for_mean.update(value, elapsed)

    def forecast(self, at_seconds: float) -> Forecast:
        *_, median, mean = self.voices(at_seconds)
        return self._age.forecast(mean, "seasonal", at_seconds, median=median)

    def voices(self, at_seconds: float) -> Sequence[float]:
        """Return what each level makes of it, those for absolute losses first, and the best of each kind."""
        self._age.require(1)
        ahead = self._cadence.ahead(at_seconds)
        effect = self._season.effect(at_seconds, self._for_median.usual_miss)
        medians, means = self._for_median.all_expected(ahead), self._for_mean.all_expected(ahead)
        best = medians[self._for_median.best()], means[self._for_mean.best()]
        return [level + effect for level in (*medians, *means, *best)]


def _hour_and_weekday(time_seconds: float) -> tuple[int, int]:
    hours = int(time_seconds // _HOUR_SECONDS)  # of any size, so that clocks may say what they like
    return hours % _HOURS, (hours // _HOURS + _EPOCH_WEEKDAY) % _DAYS
