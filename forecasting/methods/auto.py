"""The answer that is given where none is asked for: the own history's blend, and what probes say.

A probe that ran just before says in what state things are now. What counts is the innovation in it
(``forecasting.learning.innovations``): what its own history did not let expect. Regressions on news correct
the forecast from the own history, and which of them is listened to, the past decides anew at each value:
the uncorrected forecast stands among them, so with probes that say nothing it is the answer. The experts are

- the blend as it is;
- the blend, corrected by the news of the day of all predictors together;
- the median of the last 31 values, corrected by the news of the day and of the month of all predictors and by
  how far the blend is from that median;
- the robust line (``lrp_robust``) of the predictor that it is best with;
- for each predictor the blend, corrected by its news of the day alone.

A predictor of which nothing was known yet, or nothing since a value was due, is silent. One that has not
helped by itself is dropped from what is said together, but goes on being tried. News in usual sizes, and
ridge regressions that forget, keep all of it in bounds. Of the own stages (a source whose series is "")
nothing is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting import heard_values
from forecasting.base import ForecastMethod, Source, ValueForecast
from forecasting.learning.aggregation import Aggregation
from forecasting.learning.innovations import Course
from forecasting.learning.predictors import KEPT, LIMIT, PENALTY, REACH, Predictor
from forecasting.learning.regression import Ridge
from forecasting.learning.scale import Typical
from forecasting.memo import Memo
from forecasting.methods import blend, lrp_robust

MOST_PREDICTORS = 12  # the first that are heard of; a regression on more costs more than it tells
_OWN, _TOGETHER, _LEVEL, _ROBUST, _ALONE = range(5)  # the places of the experts
_VOICES = _ALONE + MOST_PREDICTORS
_LARGEST_MOVE = 30.0  # usual sizes of a correction that is learned from

Numbers = NDArray[np.float64]


def _ridge() -> Ridge:
    return Ridge(PENALTY, KEPT, REACH)


class PredictorRecord(NamedTuple):
    """How well one predictor alone corrects the blend: over *n* values the share *gain* of its absolute
    misses is saved, which chance alone would do with *p_value*; *helps* where that is hardly chance,
    *dropped* where it was tried for long and there is no gain."""

    predictor: Source
    n: int
    gain: float
    p_value: float
    helps: bool
    dropped: bool


class Inputs(NamedTuple):
    """What regressions are told, in usual sizes, and how far the blend is *apart* from the level."""

    news: list[tuple[float, float] | None]
    apart: float
    of_the_day: Numbers
    of_both: Numbers


class Opinion(NamedTuple):
    """What was made of the *own* history's forecast: from which *inputs*, and what each voice says of the
    median and of the mean; NaN for those silent."""

    own: ValueForecast
    inputs: Inputs
    medians: Numbers
    means: Numbers


@dataclass(slots=True)
class Scales:
    """How large as a rule are: what is missing in the blend and in the median of the last 31 values, and how
    far apart these two are."""

    blend: Typical = field(default_factory=Typical, init=False)
    level: Typical = field(default_factory=Typical, init=False)
    apart: Typical = field(default_factory=Typical, init=False)


@dataclass(slots=True)
class Method(ForecastMethod):
    """The blend, corrected by what predictors say."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    USES_TIMES: ClassVar[bool] = True
    USES_PREDICTORS: ClassVar[bool] = True

    _blend: blend.Method = field(default_factory=blend.Method, init=False)
    _course: Course = field(default_factory=Course, init=False)
    _scales: Scales = field(default_factory=Scales, init=False)
    _predictors: dict[str, Predictor] = field(default_factory=dict, init=False)
    _robust: lrp_robust.Method = field(default_factory=lrp_robust.Method, init=False)
    _together: Ridge = field(default_factory=_ridge, init=False)
    _level: Ridge = field(default_factory=_ridge, init=False)
    _median: Aggregation = field(default_factory=Aggregation, init=False)
    _mean: Aggregation = field(default_factory=lambda: Aggregation(squared=True), init=False)
    _begun: bool = field(default=False, init=False)
    _opinion: Memo[Opinion] = field(default_factory=Memo, init=False, compare=False)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        heard_values.require_usable(time_seconds, known_at_seconds, value)
        key = heard_values.key(source)
        if key not in self._predictors:
            if not source.series or len(self._predictors) == MOST_PREDICTORS:
                return
            self._predictors[key] = Predictor()
        self._opinion.forget()
        self._predictors[key].observe_predictor(time_seconds, known_at_seconds, float(value))
        self._robust.observe_predictor(source, time_seconds, known_at_seconds, value)

    def update(self, time_seconds: float, value: float) -> None:
        before = self._thought(time_seconds) if self._begun and self._predictors else None
        self._blend.update(time_seconds, value)  # which refuses what cannot be used
        self._opinion.forget()
        value = float(value)
        if not self._course.fits(value):
            self._scales = Scales()
        elif before:
            self._learn(before, time_seconds, value)
        self._course.learn(value)
        self._robust.update(time_seconds, value)
        self._begun = True

    def forecast(self, at_seconds: float) -> ValueForecast:
        if not self._predictors:
            own = self._blend.forecast(at_seconds)
            return ValueForecast(own.mean, own.median, "auto", own.n, own.age_seconds)
        own, _, medians, means = self._thought(at_seconds)
        mean, median = self._mean.blend(means), self._median.blend(medians)
        return ValueForecast(mean, median, "auto", own.n, own.age_seconds)

    def parts(self) -> Mapping[str, ForecastMethod]:
        """The blend and its experts, and the robust line."""
        return {"lrp_robust": self._robust, "blend": self._blend, **self._blend.parts()}

    def predictors(self) -> list[PredictorRecord]:
        """What is listened to, the most helpful first, with how well each corrects the blend by itself."""
        prospects = [
            PredictorRecord(
                heard_values.source(key),
                one.record.n,
                one.record.gain,
                one.record.p_value,
                one.record.helps,
                one.dropped,
            )
            for key, one in self._predictors.items()
        ]
        return sorted(prospects, key=lambda one: (-one.gain, one.predictor))

    def _thought(self, at_seconds: float) -> Opinion:
        known = self._opinion.at(at_seconds)
        if known is not None:
            return known
        own = self._blend.forecast(at_seconds)
        inputs = self._inputs(own.median, at_seconds)
        moves = self._moves(inputs)
        robust = self._robust.from_predictors(at_seconds) if any(inputs.news) else None
        medians, means = (self._said(one, moves, robust) for one in (own.median, own.mean))
        return self._opinion.keep(at_seconds, Opinion(own, inputs, medians, means))

    def _inputs(self, own: float, at_seconds: float) -> Inputs:
        predictors = self._predictors.values()
        measurable = self._course.fits(own)  # a trend may lead below zero where no value was
        news = [predictor.news(at_seconds) if measurable else None for predictor in predictors]
        apart = self._course.distance(own, self._course.usual())
        known = [
            (0.0, 0.0) if one is None or predictor.dropped else one
            for predictor, one in zip(predictors, news, strict=True)
        ]
        of_the_day = np.array([day for day, _ in known])
        of_both = np.array([self._scales.apart.standard(apart, LIMIT), *chain.from_iterable(known)])
        return Inputs(news, apart, of_the_day, of_both)

    def _moves(self, inputs: Inputs) -> Numbers:
        """By how much each voice corrects the blend, in the measure of the series; NaN for those silent."""
        size = self._scales.blend.size
        moves = [math.nan] * _VOICES
        moves[_OWN] = 0.0
        if any(inputs.news):
            moves[_TOGETHER] = size * _limited(self._together.expected(inputs.of_the_day))
            level = self._scales.level.size * _limited(self._level.expected(inputs.of_both))
            moves[_LEVEL] = level - inputs.apart
        for place, (predictor, news) in enumerate(
            zip(self._predictors.values(), inputs.news, strict=True), _ALONE
        ):
            if news:
                moves[place] = size * _limited(predictor.alone.expected(news[0]))
        return np.array(moves)

    def _said(self, origin: float, moves: Numbers, robust: float | None) -> Numbers:
        """What each voice expects, given the blend *origin*; NaN for those silent."""
        said = self._course.moved(origin, moves)
        if robust is not None:
            said[_ROBUST] = robust
        said[~np.isfinite(said)] = np.nan
        return said

    def _learn(self, before: Opinion, time_seconds: float, value: float) -> None:
        """Learn what should have been said: by the experts, and by who weighs them."""
        own, inputs, medians, means = before
        off = self._course.distance(value, own.median)
        if any(inputs.news):
            self._record(medians.tolist(), value)
            self._median.update(medians, value)
            self._mean.update(means, value)
            self._learn_moves(inputs, off, time_seconds)
        scales = self._scales
        scales.blend.add(off)
        scales.level.add(off + inputs.apart)
        scales.apart.add(inputs.apart)

    def _record(self, said: list[float], value: float) -> None:
        own_miss = abs(said[_OWN] - value)
        for predictor, alone in zip(self._predictors.values(), said[_ALONE:], strict=False):
            if math.isfinite(alone):
                predictor.record.add(own_miss, abs(alone - value))

    def _learn_moves(self, inputs: Inputs, off: float, time_seconds: float) -> None:
        standard = self._scales.blend.standard(off, _LARGEST_MOVE)
        self._together.learn(inputs.of_the_day, standard)
        self._level.learn(inputs.of_both, self._scales.level.standard(off + inputs.apart, _LARGEST_MOVE))
        for predictor in self._predictors.values():
            predictor.learn(time_seconds, standard)


def _limited(sizes: float) -> float:
    return max(-LIMIT, min(sizes, LIMIT))
