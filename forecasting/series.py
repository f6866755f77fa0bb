"""The observations of a series, and the forecaster that follows them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting import methods, state
from forecasting.base import (
    Abstained,
    ForecastMethod,
    Source,
    ValueForecast,
    is_usable,
    require_not_past,
)
from forecasting.learning.fading import FadingValues
from forecasting.learning.issued import IssuedAnswer, IssuedAnswers
from forecasting.learning.later_runs import LaterRuns
from forecasting.methods import auto, blend
from forecasting.prior import MIN_VALUES as PRIOR_VALUES
from forecasting.prior import Prior
from forecasting.state import MethodsByName
from forecasting.uncertainty.fading_quantiles import fading_quantiles
from forecasting.uncertainty.intervals import MIN_RESIDUALS, QUANTILE_LEVELS, Residuals, finite
from forecasting.uncertainty.spread import Spread

__all__ = [
    "DEFAULT_PROBABILITIES",
    "MIN_VALUES",
    "OWN_SERIES",
    "QUANTILE_LEVELS",
    "Forecaster",
    "Observation",
    "forecast_history",
]

MIN_VALUES = MIN_RESIDUALS + 1
OWN_SERIES = Source("", "")
DEFAULT_PROBABILITIES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Observation:
    """A *value* that happened at *time_seconds* and became known at *known_at_seconds*.

    The value of a run becomes known when the run has ended, not when it starts. *ended_at_seconds* is the end
    of a run that was reported later; None: the run ended when its value became known. All times of a series
    are seconds since the same epoch.
    """

    time_seconds: float
    known_at_seconds: float
    value: float
    ended_at_seconds: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether all numbers are finite and the magnitude of the value is at most ``LARGEST_VALUE``."""
        times = self.time_seconds, self.known_at_seconds, self.ended_at_seconds or 0.0
        return is_usable(self.value) and all(map(math.isfinite, times))


@dataclass(slots=True)
class Forecaster:
    """Forecasts one series by the method *name* and by the parts of this method.

    Quantiles come from the one-step residuals of each part, and from a ``Spread`` for the method itself. A
    value is compared with the newest answer issued before its run started: runs may overlap.

    Observations may arrive in any order, even before they become known. The methods learn an observation
    before the first forecast for a time at which the observation was known. Observations are learned in the
    order in which they became known. Among observations that became known at the same time, the observations
    of other series come first; then the order is by time and value. So the order of arrival does not matter.
    Unusable observations are ignored and counted in ``dropped``. Values of the forecast series that come too
    late (``forecasting.learning.later_runs``) are not learned, and counted in ``superseded``.
    """

    VERSION: ClassVar[int] = 4
    name: str
    dropped: int = field(default=0, init=False)
    superseded: int = field(default=0, init=False)
    used: int = field(default=0, init=False)
    last_value: float | None = field(default=None, init=False)  # the last that was learned
    used_until_seconds: float = field(default=-math.inf, init=False)
    _method: MethodsByName = field(default_factory=MethodsByName, init=False)
    _spread: Spread = field(default_factory=Spread, init=False)
    _residuals: dict[str, Residuals] = field(default_factory=dict, init=False)  # of the parts
    # the own median, what the spread issued, and the medians of the parts
    _issued: IssuedAnswers = field(default_factory=IssuedAnswers, init=False)
    _recent: FadingValues = field(default_factory=FadingValues, init=False)  # of a method without a blend
    _later_runs: LaterRuns = field(default_factory=LaterRuns, init=False)
    # a heap of (known_at_seconds, is_own, time_seconds, value, ended_at_seconds, source)
    _waiting: list[tuple[float, bool, float, float, float, Source]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self._method:  # a loaded state has one
            self._method[self.name] = methods.load(self.name)()

    @classmethod
    def started(cls, name: str, prior: Prior | None) -> Forecaster:
        """Return a new forecaster that begins with *prior*, if its method has experts; None: with nothing."""
        forecaster = cls(name)
        combined = forecaster._blend()
        if prior is not None and combined is not None:
            combined.start(prior)
        return forecaster

    def prior(self) -> Prior | None:
        """Return what this series teaches others; None if it is too short, or its method has no experts."""
        combined = self._blend()
        if combined is None or self._spread.n < PRIOR_VALUES:
            return None
        return Prior(*combined.losses())

    @classmethod
    def load(cls, kept: bytes | memoryview) -> Forecaster:
        """Return the forecaster that ``dump`` saved as *kept*.

        Raises:
            OutdatedState: a method that the state uses has changed since, or *kept* is damaged.
        """
        return state.load(cls, kept)

    def dump(self) -> bytes:
        """Return the whole state as bytes, for ``load``."""
        return state.dump(self)

    def versions(self) -> bytes:
        """Return the fingerprints of the methods that the state uses, for ``state.is_current``."""
        return state.versions(Forecaster, self.method_names())

    def method_names(self) -> list[str]:
        """Return the names of the method itself and of its parts: the methods that ``forecast`` accepts."""
        return list(self._all_methods())

    @property
    def method(self) -> ForecastMethod:
        """The method itself, in its present state."""
        return self._method[self.name]

    def observe(self, observation: Observation, source: Source = OWN_SERIES) -> None:
        """Store an *observation* of the forecast series, or of another *source*, for ``learn_until``."""
        if not observation.is_usable:
            self.dropped += 1
            return
        ended_at = observation.ended_at_seconds
        # a state cannot keep numbers of numpy
        known_at, time, value, ended = map(
            float,
            (
                observation.known_at_seconds,
                observation.time_seconds,
                observation.value,
                observation.known_at_seconds if ended_at is None else ended_at,
            ),
        )
        heapq.heappush(self._waiting, (known_at, source == OWN_SERIES, time, value, ended, source))

    def learn_until(self, at_seconds: float) -> None:
        """Let the methods learn all observations that were known at *at_seconds*.

        Raises:
            InvalidNumber: *at_seconds* is not finite.
            Abstained: ``past``: this forecaster has already learned observations that became known after
                *at_seconds*.
        """
        require_not_past(at_seconds, self.used_until_seconds, "values")
        while self._waiting and self._waiting[0][0] <= at_seconds:
            known_at, is_own, time, value, ended_at, source = heapq.heappop(self._waiting)
            if not is_own:
                self.method.observe_predictor(source, time, known_at, value)
            elif self._later_runs.supersede(ended_at):
                self.superseded += 1
            else:
                self._learn(time, known_at, value)
                self._later_runs.add(time)
            self.used_until_seconds = max(self.used_until_seconds, known_at)

    def forecast(
        self,
        at_seconds: float,
        *,
        method: str | None = None,
        probabilities: Sequence[float] = DEFAULT_PROBABILITIES,
        floor: float | None = None,
        stale_after_seconds: float | None = None,
    ) -> ValueForecast:
        """Forecast a run at *at_seconds* from the observations that were known then.

        The forecaster's own method forecasts, or its part *method*. The result has a quantile for each of
        *probabilities*. Numbers below *floor* are raised to *floor*.

        Raises:
            Abstained: ``too_few``: fewer than 3 values are known; ``stale``: the newest value is older than
                *stale_after_seconds*; ``past``: see ``learn_until``.
            InvalidNumber: *at_seconds* is not finite, or a probability is not inside (0, 1).
            UnknownMethod: *method* is neither the forecaster's method nor one of its parts.
        """
        self.learn_until(at_seconds)
        if self.used < MIN_VALUES:
            raise Abstained("too_few", f"{self.used} values are known, {MIN_VALUES} are needed")
        name = method or self.name
        point = (self.method if name == self.name else self._part(name)).forecast(at_seconds)
        if stale_after_seconds is not None and point.age_seconds > stale_after_seconds:
            limits = f"{point.age_seconds:.0f} s old, accepted are {stale_after_seconds:.0f} s"
            raise Abstained("stale", f"the newest value is {limits}")
        if name == self.name:
            fading = self._fading_quantiles(at_seconds)
            around = self._spread.around(point.median, probabilities, fading)
        else:
            around = self._residuals.get(name, Residuals()).around(point.median, probabilities)
        quantiles = _with_own(around, point.quantiles)
        return _floored(point, quantiles, -math.inf if floor is None else floor)

    def part_medians(self, at_seconds: float, *, floor: float | None = None) -> dict[str, float]:
        """Return each part's median forecast for a run at *at_seconds*, without parts that abstain.

        Medians below *floor* are raised to *floor*.
        """
        minimum = -math.inf if floor is None else floor
        medians = {name: _median_or_nan(part, at_seconds) for name, part in self.method.parts().items()}
        return {name: max(median, minimum) for name, median in medians.items() if not math.isnan(median)}

    def _blend(self) -> blend.Method | None:
        method = self.method
        if isinstance(method, auto.Method):
            return method.blend
        return method if isinstance(method, blend.Method) else None

    def _part(self, name: str) -> ForecastMethod:
        all_methods = self._all_methods()
        if name not in all_methods:
            raise methods.unknown(name, all_methods)
        return all_methods[name]

    def _all_methods(self) -> Mapping[str, ForecastMethod]:
        method = self._method[self.name]
        return {self.name: method, **method.parts()}

    def _learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        present = self._answer(max(time_seconds, self._issued.used_until_seconds))
        if present is not None:
            if self._issued.is_current(time_seconds):
                issued: IssuedAnswer | None = IssuedAnswer(present, 0)
            else:
                issued = self._issued.issued(time_seconds, len(present))
                if issued is None and self._spread.n < MIN_RESIDUALS:
                    issued = IssuedAnswer(present, 0)  # a poor first error is better than none
            if issued is not None:
                self._score(issued, value)
        if self._blend() is None and (len(self._recent) or not self._issued.is_current(time_seconds)):
            self._recent.add(known_at_seconds, value)
        self._issued.keep(present, time_seconds, known_at_seconds)
        self._method[self.name].learn(time_seconds, known_at_seconds, value)
        self.used += 1
        self.last_value = value

    def _answer(self, at_seconds: float) -> NDArray[np.float64] | None:
        """Return the own median for *at_seconds*, what the spread issues, and the medians of all parts.

        NaN stands for parts that abstain. Parts that join later are appended. None if the forecaster's own
        method abstains.
        """
        method = self.method
        point = _median_or_nan(method, at_seconds)
        if math.isnan(point):
            return None
        medians = [_median_or_nan(part, at_seconds) for part in method.parts().values()]
        issued = self._spread.issue(point, self._fading_quantiles(at_seconds))
        return np.concatenate(((point,), issued, medians))

    def _fading_quantiles(self, at_seconds: float) -> NDArray[np.float64] | None:
        combined = self._blend()
        recent = self._recent if combined is None else combined.fading_values
        return None if recent is None else fading_quantiles(recent, at_seconds)

    def _score(self, issued: IssuedAnswer, value: float) -> None:
        parts = self._method[self.name].parts()
        first = len(issued.numbers) - len(parts)
        of_spread, medians = issued.numbers[1:first], issued.numbers[first:]
        self._spread.learn(float(issued.numbers[0]), value, IssuedAnswer(of_spread, issued.overlap))
        for name, median in zip(parts, medians.tolist(), strict=True):
            if not math.isnan(median):
                self._residuals.setdefault(name, Residuals()).add(finite(value - median))


def forecast_history(
    observations: Iterable[Observation],
    at_seconds: float,
    *,
    method: str = "nws",
    probabilities: Sequence[float] = DEFAULT_PROBABILITIES,
    floor: float | None = 0.0,
    stale_after_seconds: float | None = None,
) -> ValueForecast:
    """Forecast a series in one call from all its *observations*, in any order.

    *probabilities*, *floor* and *stale_after_seconds* are those of ``Forecaster.forecast``. The default
    *floor* suits durations and rates.

    Raises:
        UnknownMethod: *method* is not a file in ``forecasting/methods/``.
        Abstained, InvalidNumber: as in ``Forecaster.forecast``.
    """
    forecaster = Forecaster(method)
    for observation in observations:
        forecaster.observe(observation)
    return forecaster.forecast(
        at_seconds, probabilities=probabilities, floor=floor, stale_after_seconds=stale_after_seconds
    )


def _median_or_nan(method: ForecastMethod, at_seconds: float) -> float:
    try:
        return method.forecast(at_seconds).median
    except Abstained:
        return math.nan


def _with_own(around: Mapping[float, float], own: Mapping[float, float]) -> dict[float, float]:
    """Merge the quantiles *around* a forecast with the method's *own* quantiles, which take precedence.

    The own quantiles limit the quantiles *around*, so that quantiles never fall with rising probability.
    """
    quantiles = dict(around)
    for own_probability, bound in own.items():
        for probability, value in quantiles.items():
            if probability == own_probability:
                quantiles[probability] = bound
            else:
                quantiles[probability] = (
                    min(value, bound) if probability < own_probability else max(value, bound)
                )
    return quantiles


def _floored(point: ValueForecast, quantiles: Mapping[float, float], minimum: float) -> ValueForecast:
    """Return *point* with *quantiles*; numbers below *minimum* are raised to *minimum*."""
    return ValueForecast(
        max(point.mean, minimum),
        max(point.median, minimum),
        point.method,
        point.n,
        point.age_seconds,
        {probability: max(value, minimum) for probability, value in quantiles.items()},
    )
