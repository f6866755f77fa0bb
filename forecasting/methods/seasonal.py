"""A level, and what the hour of the day and the weekday add to it (UTC), where the data show that they do.

What a time adds is the mean of how far values then were from the slowest level: of the last 20 or so, cut to
what is not wild, and shrunken towards nothing by as much as chance alone could account for: a mean m of
standard error s becomes m / (1 + (s/m)^2). An hour is judged by its neighbours too.

Whether there is a season is decided by forecasts and not by fit. Levels of values without the effects of
hours, of weekdays, and of both are kept beside the level of the values as they are. Only where one of the
three, its effects added again, has missed by so much less that chance hardly does it (the statistic of
Diebold and Mariano, "Comparing predictive accuracy", JBES 13, 1995, with old values slowly forgotten) it
gives the answer; elsewhere that is the level itself, as of ``decaying``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.levels import MeanLevels, MedianLevels
from forecasting.learning.scale import Typical
from forecasting.memo import Memo

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
    """What the hour and the weekday add."""

    hours: Effects = field(default_factory=lambda: Effects.of(_HOURS, _NEIGHBOURS_WEIGHT), init=False)
    weekdays: Effects = field(default_factory=lambda: Effects.of(_DAYS, 0.0), init=False)
    _typical: Typical = field(default_factory=Typical, init=False)

    def effects(self, time_seconds: float) -> tuple[float, float, float, float]:
        """Return what is added by nothing, the hour, the weekday, and both."""
        hour, weekday = _hour_and_weekday(time_seconds)
        usual = self._typical.size
        of_hour, of_weekday = self.hours.at(hour, usual), self.weekdays.at(weekday, usual)
        return 0.0, of_hour, of_weekday, of_hour + of_weekday

    def learn(self, time_seconds: float, deviation: float) -> None:
        """Take in how far a value of that time was from the level."""
        hour, weekday = _hour_and_weekday(time_seconds)
        beyond_hour = deviation - self.hours.at(hour, self._typical.size)
        self._typical.add(deviation)
        reach = _REACH * self._typical.size
        self.hours.learn(hour, min(max(deviation, -reach), reach))
        self.weekdays.learn(weekday, min(max(beyond_hour, -reach), reach))


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the level without seasons, plus what is shown of the season at the time asked about."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    USES_TIMES: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 2 * len(MedianLevels.MEMORIES) + 6

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _season: Season = field(default_factory=Season, init=False)
    # of values as they are, and without what hours, weekdays and both add
    _for_median: list[MedianLevels] = field(
        default_factory=lambda: [MedianLevels(), MedianLevels(), MedianLevels(), MedianLevels()], init=False
    )
    _for_mean: list[MeanLevels] = field(default_factory=lambda: [MeanLevels(), MeanLevels()], init=False)
    _evidence: list[Evidence] = field(
        default_factory=lambda: [Evidence(), Evidence(), Evidence()], init=False
    )
    _voices: Memo[Sequence[float]] = field(default_factory=Memo, init=False, compare=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        value = float(value)
        elapsed = self._cadence.note(time_seconds)
        effects = self._season.effects(time_seconds)
        if self._age.n > 1:
            self._season.learn(time_seconds, value - self._for_median[-1].all_expected(elapsed)[-1])
        misses = [
            levels.update(value - effect, elapsed)
            for levels, effect in zip(self._for_median, effects, strict=True)
        ]
        self._judge(misses)
        plain, seasonal = self._for_mean
        plain.update(value, elapsed)
        seasonal.update(value - effects[-1], elapsed)
        self._voices.forget()

    def forecast(self, at_seconds: float) -> ValueForecast:
        *_, median, mean = self.expert_forecasts(at_seconds)
        return self._age.forecast(mean, "seasonal", at_seconds, median=median)

    def expert_forecasts(self, at_seconds: float) -> Sequence[float]:
        """Return each level's answer, those for absolute losses first; the best with nothing, the hour, the
        weekday and both added; and the two answers."""
        known = self._voices.at(at_seconds)
        if known is not None:
            return known
        self._age.require(1)
        ahead = self._cadence.ahead(at_seconds)
        effects = self._season.effects(at_seconds)
        shown = self._shown()
        levels = self._for_mean[shown > 0]
        effect = effects[-1] if shown else 0.0
        means = [level + effect for level in levels.all_expected(ahead)]
        medians = [level + effects[shown] for level in self._for_median[shown].all_expected(ahead)]
        all_best = [
            each.expected(ahead) + added for each, added in zip(self._for_median, effects, strict=True)
        ]
        answers = all_best[shown], means[levels.best()]
        return self._voices.keep(at_seconds, (*medians, *means, *all_best, *answers))

    def _judge(self, misses: Sequence[float]) -> None:
        """Note how much better the newest value would have been forecast with each of the effects."""
        usual = self._for_median[0].usual_miss
        if usual:
            for evidence, miss in zip(self._evidence, misses[1:], strict=True):
                gain = (misses[0] - miss) / usual
                evidence.note(min(max(gain, -_LARGEST_GAIN), _LARGEST_GAIN))

    def _shown(self) -> int:
        """Which of the effects is shown best: 0 is none."""
        strengths = [_SIGNIFICANT, *(evidence.strength for evidence in self._evidence)]
        return strengths.index(max(strengths))


def _hour_and_weekday(time_seconds: float) -> tuple[int, int]:
    hours = int(time_seconds // _HOUR_SECONDS)  # of any size, so that clocks may say what they like
    return hours % _HOURS, (hours // _HOURS + _EPOCH_WEEKDAY) % _DAYS
