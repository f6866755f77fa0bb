"""The default method: the forecast of ``blend`` from the own history, corrected by the innovations of probes.

A probe that ran shortly before indicates the present state of the grid: its innovation is the difference from
what the probe's own history predicts (``forecasting.learning.innovations``). Regressions on innovations
correct the blend, which is the forecast from the own history. The corrected forecasts and the uncorrected
forecast are experts, weighted by their past errors: if no probe helps, the answer is the uncorrected
forecast. The experts are

- the blend as it is;
- the blend, corrected by the short-term innovations of all predictors together;
- the median of the last 31 values, corrected by the short-term and long-term innovations of all predictors,
  and by the distance of the blend from that median;
- the robust line (``lrp_robust``) on its best predictor;
- for each predictor the blend, corrected by its short-term innovation alone.

A predictor without a known value, or whose next value is overdue, is left out. A predictor that has not
helped alone is dropped from the regressions on all predictors, but its own correction is still evaluated.
If other runs ended while a run was under way, its value corrects the forecast that was issued before the run
started, and only one of so many overlapping runs is used for the regressions.

Innovations are in usual sizes and limited, and ridge regressions forget, so corrections stay bounded. The
stages of the series itself (a source whose series is "") are not used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting import predictor_values
from forecasting.base import ForecastMethod, Source, ValueForecast
from forecasting.learning.aggregation import Aggregation
from forecasting.learning.innovations import Innovation, InnovationTracker
from forecasting.learning.issued import OutcomeSampling
from forecasting.learning.predictors import DECAY, LIMIT, PENALTY, REACH, Predictor
from forecasting.learning.regression import Ridge
from forecasting.learning.scale import TypicalSize
from forecasting.memo import Memo
from forecasting.methods import blend, lrp_robust

MAX_PREDICTORS = 12  # the first that have a value; a regression on more costs more than it gains
_OWN, _TOGETHER, _LEVEL, _ROBUST, _ALONE = range(5)  # the indexes of the experts
_EXPERTS = _ALONE + MAX_PREDICTORS
_LARGEST_CORRECTION = 30.0  # usual sizes: the limit of a correction that is learned

Numbers = NDArray[np.float64]


def _ridge() -> Ridge:
    return Ridge(PENALTY, DECAY, REACH)


class PredictorRecord(NamedTuple):
    """The record of one predictor: how well this predictor alone corrects the blend.

    Attributes:
        predictor: source of the predictor's values.
        n: number of values for which the predictor's correction was scored.
        gain: share of the blend's absolute errors that the correction saves.
        p_value: probability of such a gain by chance alone.
        helps: whether the gain is significant.
        dropped: whether many trials gave no gain.
    """

    predictor: Source
    n: int
    gain: float
    p_value: float
    helps: bool
    dropped: bool


class Inputs(NamedTuple):
    """The inputs of the regressions, in usual sizes.

    Attributes:
        innovations: the innovation of each predictor, None if unknown or too old.
        apart: distance from the level (the median of 31 values) to the blend, on the scale of the series, not
            in usual sizes.
        short_term: the short-term innovations, the input of the regression that corrects the blend.
        of_level: *apart* and all innovations, the input of the regression that corrects the level.
    """

    innovations: list[Innovation | None]
    apart: float
    short_term: Numbers
    of_level: Numbers


class ExpertForecasts(NamedTuple):
    """The forecasts of all experts and the data from which they follow; NaN for an expert that abstains.

    Attributes:
        own: the forecast from the own history.
        inputs: the inputs of the regressions.
        medians: the median forecast of each expert.
        means: the mean forecast of each expert.
    """

    own: ValueForecast
    inputs: Inputs
    medians: Numbers
    means: Numbers


@dataclass(slots=True)
class UsualSizes:
    """The usual error of the blend, the usual error of the level, and the usual distance between the two."""

    blend: TypicalSize = field(default_factory=TypicalSize, init=False)
    level: TypicalSize = field(default_factory=TypicalSize, init=False)
    apart: TypicalSize = field(default_factory=TypicalSize, init=False)


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts with the blend, corrected by predictors."""

    VERSION: ClassVar[int] = 3
    EXPERT: ClassVar[bool] = False
    USES_TIMES: ClassVar[bool] = True
    USES_PREDICTORS: ClassVar[bool] = True

    _blend: blend.Method = field(default_factory=blend.Method, init=False)
    _tracker: InnovationTracker = field(default_factory=InnovationTracker, init=False)
    _sizes: UsualSizes = field(default_factory=UsualSizes, init=False)
    _predictors: dict[str, Predictor] = field(default_factory=dict, init=False)
    _robust: lrp_robust.Method = field(default_factory=lrp_robust.Method, init=False)
    _together: Ridge = field(default_factory=_ridge, init=False)
    _level: Ridge = field(default_factory=_ridge, init=False)
    _median: Aggregation = field(default_factory=Aggregation, init=False)
    _mean: Aggregation = field(default_factory=lambda: Aggregation(squared=True), init=False)
    _has_values: bool = field(default=False, init=False)
    _evidence: OutcomeSampling = field(default_factory=OutcomeSampling, init=False)
    _memo: Memo[ExpertForecasts] = field(default_factory=Memo, init=False, compare=False)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        predictor_values.require_usable(time_seconds, known_at_seconds, value)
        key = predictor_values.key(source)
        if key not in self._predictors:
            if not source.series or len(self._predictors) == MAX_PREDICTORS:
                return
            self._predictors[key] = Predictor()
        self._memo.clear()
        self._predictors[key].observe(time_seconds, known_at_seconds, float(value))
        self._robust.observe_predictor(source, time_seconds, known_at_seconds, value)

    def update(self, time_seconds: float, value: float) -> None:
        self.learn(time_seconds, time_seconds, value)

    def learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        issued = self._blend.forecast_before(time_seconds) if self._has_values and self._predictors else None
        before = self._expert_forecasts(time_seconds, issued[0] if issued[1] else None) if issued else None
        self._blend.learn(time_seconds, known_at_seconds, value)  # refuses an unusable value
        self._memo.clear()
        value = float(value)
        if not self._tracker.fits_scale(value):
            self._sizes = UsualSizes()
        elif before and issued:
            self._learn(before, time_seconds, value, issued[1])
        self._tracker.update(value)
        self._robust.update(time_seconds, value)
        self._has_values = True

    def forecast(self, at_seconds: float) -> ValueForecast:
        if not self._predictors:
            own = self._blend.forecast(at_seconds)
            return ValueForecast(own.mean, own.median, "auto", own.n, own.age_seconds)
        own, _, medians, means = self._expert_forecasts(at_seconds)
        mean, median = self._mean.blend(means), self._median.blend(medians)
        return ValueForecast(mean, median, "auto", own.n, own.age_seconds)

    def parts(self) -> Mapping[str, ForecastMethod]:
        """Return the robust line (``lrp_robust``), the blend, and the blend's experts, by name."""
        return {"lrp_robust": self._robust, "blend": self._blend, **self._blend.parts()}

    @property
    def blend(self) -> blend.Method:
        """The forecast from the own history."""
        return self._blend

    def predictors(self) -> list[PredictorRecord]:
        """Return the records of all predictors, the highest gain first."""
        records = [
            PredictorRecord(
                predictor_values.source(key),
                predictor.record.n,
                predictor.record.gain,
                predictor.record.p_value,
                predictor.record.helps,
                predictor.is_dropped,
            )
            for key, predictor in self._predictors.items()
        ]
        return sorted(records, key=lambda record: (-record.gain, record.predictor))

    def _expert_forecasts(self, at_seconds: float, own: ValueForecast | None = None) -> ExpertForecasts:
        """Return the forecasts for *at_seconds*; *own* replaces the present forecast of the blend."""
        if own is None:
            cached = self._memo.get(at_seconds)
            if cached is not None:
                return cached
        answer = self._corrected_forecasts(at_seconds, own or self._blend.forecast(at_seconds))
        return answer if own else self._memo.keep(at_seconds, answer)

    def _corrected_forecasts(self, at_seconds: float, own: ValueForecast) -> ExpertForecasts:
        inputs = self._inputs(own.median, at_seconds)
        corrections = self._corrections(inputs)
        robust = self._robust.forecast_from_predictor(at_seconds) if any(inputs.innovations) else None
        medians, means = (self._corrected(origin, corrections, robust) for origin in (own.median, own.mean))
        return ExpertForecasts(own, inputs, medians, means)

    def _inputs(self, own: float, at_seconds: float) -> Inputs:
        predictors = self._predictors.values()
        is_on_scale = self._tracker.fits_scale(own)  # a trend may lead below zero where no value was
        innovations = [predictor.innovation(at_seconds) if is_on_scale else None for predictor in predictors]
        apart = self._tracker.distance(own, self._tracker.median())
        used = [
            (0.0, 0.0) if innovation is None or predictor.is_dropped else innovation
            for predictor, innovation in zip(predictors, innovations, strict=True)
        ]
        short_term = np.array([short for short, _ in used])
        of_level = np.array([self._sizes.apart.standardised(apart, LIMIT), *chain.from_iterable(used)])
        return Inputs(innovations, apart, short_term, of_level)

    def _corrections(self, inputs: Inputs) -> Numbers:
        """Return the correction of the blend by each expert, on the scale of the series.

        The correction is NaN for an expert without one: it abstains or forecasts without the blend.
        """
        size = self._sizes.blend.size
        corrections = [math.nan] * _EXPERTS
        corrections[_OWN] = 0.0
        if any(inputs.innovations):
            corrections[_TOGETHER] = size * _limited(self._together.expected(inputs.short_term))
            level = self._sizes.level.size * _limited(self._level.expected(inputs.of_level))
            corrections[_LEVEL] = level - inputs.apart
        for place, (predictor, innovation) in enumerate(
            zip(self._predictors.values(), inputs.innovations, strict=True), _ALONE
        ):
            if innovation:
                corrections[place] = size * _limited(predictor.regression.expected(innovation.short_term))
        return np.array(corrections)

    def _corrected(self, origin: float, corrections: Numbers, robust: float | None) -> Numbers:
        """Return the forecast of each expert: the blend's forecast *origin* plus the expert's correction.

        The forecast is NaN for an expert without a correction. If *robust* is not None, it is the forecast of
        the expert ``lrp_robust``.
        """
        forecasts = self._tracker.shifted(origin, corrections)
        if robust is not None:
            forecasts[_ROBUST] = robust
        forecasts[~np.isfinite(forecasts)] = np.nan
        return forecasts

    def _learn(self, before: ExpertForecasts, time_seconds: float, value: float, overlap: int) -> None:
        """Learn the corrections and the weights of the experts from *value* and its forecasts *before*.

        *overlap* is the number of values learned since these forecasts were issued.
        """
        own, inputs, medians, means = before
        error = self._tracker.distance(value, own.median)
        if any(inputs.innovations):
            self._median.update(medians, value, overlap)
            self._mean.update(means, value, overlap)
            if self._evidence.counts(overlap):
                self._add_to_records(medians.tolist(), value)
                self._learn_corrections(inputs, error, time_seconds)
        sizes = self._sizes
        sizes.blend.add(error)
        sizes.level.add(error + inputs.apart)
        sizes.apart.add(inputs.apart)

    def _add_to_records(self, medians: list[float], value: float) -> None:
        own_error = abs(medians[_OWN] - value)
        for predictor, alone in zip(self._predictors.values(), medians[_ALONE:], strict=False):
            if math.isfinite(alone):
                predictor.record.add(own_error, abs(alone - value))

    def _learn_corrections(self, inputs: Inputs, error: float, time_seconds: float) -> None:
        correction = self._sizes.blend.standardised(error, _LARGEST_CORRECTION)
        of_level = self._sizes.level.standardised(error + inputs.apart, _LARGEST_CORRECTION)
        self._together.learn(inputs.short_term, correction)
        self._level.learn(inputs.of_level, of_level)
        for predictor in self._predictors.values():
            predictor.learn(time_seconds, correction)


def _limited(sizes: float) -> float:
    return max(-LIMIT, min(sizes, LIMIT))
