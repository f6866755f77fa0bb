"""A level plus the effects of the hour of the day and the weekday (UTC), where the data show such effects.

The effect of an hour (or weekday) is the mean distance of its values from the slowest level. About the last
20 values of the hour count; the values of the neighbouring hours count half as much. Outliers are limited,
and the mean is shrunk towards 0 by as much as chance could account for: a mean m of standard error s becomes
m / (1 + (s/m)^2).

Forecast errors, not the fit, decide whether there is a season. Besides the level of the values themselves,
there are levels of the values without the effects of hours, of weekdays, and of both. Such a level, with its
effects added again, gives the forecast only if its errors were significantly smaller (the statistic of
Diebold and Mariano, "Comparing predictive accuracy", JBES 13, 1995, with decaying weights). Otherwise the
forecast is the plain level, as in ``decaying``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.levels import MeanLevels, MedianLevels
from forecasting.learning.scale import TypicalSize
from forecasting.memo import Memo

_HOUR_SECONDS = 3600.0
_HOURS = 24
_DAYS = 7
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0

_DECAY = 0.95  # factor of the evidence for an effect at each new value of its hour or weekday
_REACH = 3.0  # usual errors: the limit of a deviation
_VARIANCE = 1.5  # squared usual errors: roughly the variance of one deviation
_NEIGHBOURS_WEIGHT = 0.5
_GAIN_DECAY = 0.995
_SIGNIFICANT = 2.0  # standard errors; absent effects lose, so chance reaches it less often than 1 in 44
_LARGEST_GAIN = 3.0  # typical errors: the limit of a gain, so that no single value proves a season


@dataclass(slots=True)
class Effects:
    """The effects of the times of a cycle on the level, such as the effect of each hour of the day."""

    sums: list[float]
    weights: list[float]
    neighbours_weight: float

    @classmethod
    def of(cls, count: int, neighbours_weight: float) -> Effects:
        return cls([0.0] * count, [0.0] * count, neighbours_weight)

    def at(self, index: int, usual: float) -> float:
        """Return the effect of time *index* of the cycle, shrunk by the *usual* size of deviations."""
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
        """Learn the *deviation* from the level of a value at time *index* of the cycle."""
        self.sums[index] = _DECAY * self.sums[index] + deviation
        self.weights[index] = _DECAY * self.weights[index] + 1.0


@dataclass(slots=True)
class Evidence:
    """The evidence that effects make forecasts better: decaying sums of gains and of squared gains.

    A gain is the decrease of the absolute error, in typical errors.
    """

    gains: float = 0.0
    squares: float = 0.0

    def add(self, gain: float) -> None:
        self.gains = _GAIN_DECAY * self.gains + gain
        self.squares = _GAIN_DECAY * _GAIN_DECAY * self.squares + gain * gain

    @property
    def strength(self) -> float:
        """The mean gain, in standard errors of this mean."""
        return self.gains / math.sqrt(self.squares) if self.squares else 0.0


@dataclass(slots=True)
class Season:
    """The effects of the hour and the weekday."""

    hours: Effects = field(default_factory=lambda: Effects.of(_HOURS, _NEIGHBOURS_WEIGHT), init=False)
    weekdays: Effects = field(default_factory=lambda: Effects.of(_DAYS, 0.0), init=False)
    _typical: TypicalSize = field(default_factory=TypicalSize, init=False)

    def effects(self, time_seconds: float) -> tuple[float, float, float, float]:
        """Return the effects at a time: 0 (no effect), the hour's, the weekday's, and the sum of both."""
        hour, weekday = _hour_and_weekday(time_seconds)
        usual = self._typical.size
        of_hour, of_weekday = self.hours.at(hour, usual), self.weekdays.at(weekday, usual)
        return 0.0, of_hour, of_weekday, of_hour + of_weekday

    def learn(self, time_seconds: float, deviation: float) -> None:
        """Learn the *deviation* from the level of a value at *time_seconds*."""
        hour, weekday = _hour_and_weekday(time_seconds)
        beyond_hour = deviation - self.hours.at(hour, self._typical.size)
        self._typical.add(deviation)
        reach = _REACH * self._typical.size
        self.hours.learn(hour, min(max(deviation, -reach), reach))
        self.weekdays.learn(weekday, min(max(beyond_hour, -reach), reach))


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the level without seasons, plus the significant effects at the requested time."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    USES_TIMES: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 2 * len(MedianLevels.MEMORIES) + 6

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _season: Season = field(default_factory=Season, init=False)
    # of the values, and of the values without the effects of hours, weekdays and both
    _for_median: list[MedianLevels] = field(
        default_factory=lambda: [MedianLevels(), MedianLevels(), MedianLevels(), MedianLevels()], init=False
    )
    _for_mean: list[MeanLevels] = field(default_factory=lambda: [MeanLevels(), MeanLevels()], init=False)
    _evidence: list[Evidence] = field(
        default_factory=lambda: [Evidence(), Evidence(), Evidence()], init=False
    )
    _memo: Memo[Sequence[float]] = field(default_factory=Memo, init=False, compare=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        value = float(value)
        elapsed = self._cadence.add(time_seconds)
        effects = self._season.effects(time_seconds)
        if self._age.n > 1:
            self._season.learn(time_seconds, value - self._for_median[-1].all_expected(elapsed)[-1])
        errors = [
            levels.update(value - effect, elapsed)
            for levels, effect in zip(self._for_median, effects, strict=True)
        ]
        self._compare(errors)
        plain, seasonal = self._for_mean
        plain.update(value, elapsed)
        seasonal.update(value - effects[-1], elapsed)
        self._memo.clear()

    def forecast(self, at_seconds: float) -> ValueForecast:
        *_, median, mean = self.expert_forecasts(at_seconds)
        return self._age.forecast(mean, "seasonal", at_seconds, median=median)

    def expert_forecasts(self, at_seconds: float) -> Sequence[float]:
        """Return the expert forecasts: all levels, the best level with each effect, the median and the mean.

        All levels for absolute losses come before all levels for squared losses.
        """
        cached = self._memo.get(at_seconds)
        if cached is not None:
            return cached
        self._age.require(1)
        ahead = self._cadence.ahead(at_seconds)
        effects = self._season.effects(at_seconds)
        effect_index = self._significant()
        levels = self._for_mean[effect_index > 0]
        effect = effects[-1] if effect_index else 0.0
        means = [level + effect for level in levels.all_expected(ahead)]
        medians = [
            level + effects[effect_index] for level in self._for_median[effect_index].all_expected(ahead)
        ]
        all_best = [
            levels_of.expected(ahead) + added
            for levels_of, added in zip(self._for_median, effects, strict=True)
        ]
        median, mean = all_best[effect_index], means[levels.best()]
        return self._memo.keep(at_seconds, (*medians, *means, *all_best, median, mean))

    def _compare(self, errors: Sequence[float]) -> None:
        """Add the gain of each kind of effects to its evidence.

        *errors* are the absolute errors of the newest value: first without effects, then with each kind of
        effects.
        """
        usual = self._for_median[0].usual_error
        if usual:
            for evidence, error in zip(self._evidence, errors[1:], strict=True):
                gain = (errors[0] - error) / usual
                evidence.add(min(max(gain, -_LARGEST_GAIN), _LARGEST_GAIN))

    def _significant(self) -> int:
        """Return the index in ``Season.effects`` of the strongest significant effects; 0 for no effect."""
        strengths = [_SIGNIFICANT, *(evidence.strength for evidence in self._evidence)]
        return strengths.index(max(strengths))


def _hour_and_weekday(time_seconds: float) -> tuple[int, int]:
    hours = int(time_seconds // _HOUR_SECONDS)  # an int of any size, for any clock
    return hours % _HOURS, (hours // _HOURS + _EPOCH_WEEKDAY) % _DAYS
