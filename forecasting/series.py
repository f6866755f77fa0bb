"""A series as it became known, and the forecaster that follows it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting import methods, state
from forecasting.base import (
    Abstained,
    ForecastMethod,
    Source,
    ValueForecast,
    is_usable,
    require_not_past,
)
from forecasting.state import MethodsByName
from forecasting.uncertainty.intervals import LEAST_RESIDUALS, QUANTILE_LEVELS, Residuals, finite
from forecasting.uncertainty.spread import Spread

__all__ = [
    "LEAST_VALUES",
    "OWN_SERIES",
    "QUANTILE_LEVELS",
    "USUAL_PROBABILITIES",
    "Forecaster",
    "Observation",
    "forecast_history",
]

LEAST_VALUES = LEAST_RESIDUALS + 1
OWN_SERIES = Source("", "")
USUAL_PROBABILITIES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Observation:
    """A *value* that happened at *time_seconds* and could be known from *known_at_seconds* on.

    A run is known when its report has ended, not when it started. Times are seconds since one epoch.
    """

    time_seconds: float
    known_at_seconds: float
    value: float

    @property
    def usable(self) -> bool:
        """Whether every number is finite, and the value within what methods can work with."""
        return is_usable(self.value) and all(map(math.isfinite, (self.time_seconds, self.known_at_seconds)))


@dataclass(slots=True)
class Forecaster:
    """One method, with all that it is made of, following one series; each with its own one-step misses, and
    the one that was named with the better informed ``Spread``.

    Observations may be handed over in any order and early: each is used from the first forecast on that asks
    about a time at which it was known, in the order in which they became known (of equals, those of other
    series first, then by time and value, so that the order of arrival never matters). Those that are not
    usable numbers are left out and counted in ``dropped``.
    """

    VERSION: ClassVar[int] = 1
    name: str
    dropped: int = field(default=0, init=False)
    used: int = field(default=0, init=False)
    used_until_seconds: float = field(default=-math.inf, init=False)
    _method: MethodsByName = field(default_factory=MethodsByName, init=False)
    _spread: Spread = field(default_factory=Spread, init=False)  # around the method that was named
    _misses: dict[str, Residuals] = field(default_factory=dict, init=False)  # of its parts
    # a heap of known at, whether it is the series itself, time, value, source
    _waiting: list[tuple[float, bool, float, float, str, str]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self._method:  # it is there when a state was loaded
            self._method[self.name] = methods.load(self.name)()

    @classmethod
    def load(cls, kept: bytes | memoryview) -> Forecaster:
        """Go on with what ``dump`` returned.

        Raises:
            OutdatedState: it was kept by other methods than today's, or is damaged.
        """
        return state.load(cls, kept)

    def dump(self) -> bytes:
        """Return all that is known, for ``load``."""
        return state.dump(self)

    def versions(self) -> bytes:
        """Return the versions of the methods that its state uses, for ``state.is_current``."""
        return state.versions(Forecaster, self.method_names())

    def method_names(self) -> list[str]:
        """The methods that can be asked: the one that was named, and its parts."""
        return list(self._asked())

    @property
    def method(self) -> ForecastMethod:
        """The one that was named, as it is now."""
        return self._method[self.name]

    def observe(self, observation: Observation, source: Source = OWN_SERIES) -> None:
        """Take note of *observation*, of the series itself or of another *source*; it is used once it is
        known."""
        if not observation.usable:
            self.dropped += 1
            return
        # numbers of numpy could not be kept
        known_at, time, value = map(
            float, (observation.known_at_seconds, observation.time_seconds, observation.value)
        )
        heapq.heappush(self._waiting, (known_at, source == OWN_SERIES, time, value, *source))

    def learn_until(self, at_seconds: float) -> None:
        """Use all that was known at *at_seconds*.

        Raises:
            InvalidNumber: the time is not finite.
            Abstained: ``past``: what was not known at *at_seconds* has been used.
        """
        require_not_past(at_seconds, self.used_until_seconds, "values")
        while self._waiting and self._waiting[0][0] <= at_seconds:
            known_at, is_itself, time, value, *source = heapq.heappop(self._waiting)
            if is_itself:
                self._learn(time, value)
            else:
                self._hear(Source(*source), time, known_at, value)
            self.used_until_seconds = max(self.used_until_seconds, known_at)

    def forecast(
        self,
        at_seconds: float,
        *,
        method: str | None = None,
        probabilities: Sequence[float] = USUAL_PROBABILITIES,
        floor: float | None = None,
        stale_after_seconds: float | None = None,
    ) -> ValueForecast:
        """Say what to expect of a run at *at_seconds*, from what was known then, by *method*, or by the one
        that was named. No number is below *floor*.

        Raises:
            Abstained: ``too_few`` below 3 values; ``stale`` if the newest is older than
                *stale_after_seconds*; ``past`` if values are in use that were not known at *at_seconds*.
            InvalidNumber: the time is not finite, or a probability not inside (0, 1).
            UnknownMethod: *method* is no part of the one that was named.
        """
        self.learn_until(at_seconds)
        if self.used < LEAST_VALUES:
            raise Abstained("too_few", f"{self.used} values are known, {LEAST_VALUES} are needed")
        name = method or self.name
        point = (self.method if name == self.name else self._part(name)).forecast(at_seconds)
        if stale_after_seconds is not None and point.age_seconds > stale_after_seconds:
            limits = f"{point.age_seconds:.0f} s old, accepted are {stale_after_seconds:.0f} s"
            raise Abstained("stale", f"the newest value is {limits}")
        spread = self._spread if name == self.name else self._misses.get(name, Residuals())
        quantiles = _with_own(spread.around(point.median, probabilities), point.quantiles)
        return _floored(point, quantiles, -math.inf if floor is None else floor)

    def part_medians(self, at_seconds: float, *, floor: float | None = None) -> dict[str, float]:
        """What the parts of the method that was named say of a run at *at_seconds*, from what is known: the
        median of each that has an answer."""
        least = -math.inf if floor is None else floor
        return {name: max(said.median, least) for name, said in self._said(at_seconds) if name != self.name}

    def _part(self, name: str) -> ForecastMethod:
        asked = self._asked()
        if name not in asked:
            raise methods.unknown(name, asked)
        return asked[name]

    def _asked(self) -> Mapping[str, ForecastMethod]:
        method = self._method[self.name]
        return {self.name: method, **method.parts()}

    def _learn(self, time_seconds: float, value: float) -> None:
        for name, said in self._said(time_seconds):
            if name == self.name:
                self._spread.learn(said.median, value)
            else:
                self._misses.setdefault(name, Residuals()).add(finite(value - said.median))
        self._method[self.name].update(time_seconds, value)
        self.used += 1

    def _said(self, time_seconds: float) -> Iterator[tuple[str, ValueForecast]]:
        """What each method that had an answer would have said of a run at *time_seconds*."""
        for name, method in self._asked().items():
            try:
                yield name, method.forecast(time_seconds)
            except Abstained:
                continue

    def _hear(self, source: Source, time_seconds: float, known_at_seconds: float, value: float) -> None:
        self._method[self.name].observe_predictor(source, time_seconds, known_at_seconds, value)


def forecast_history(
    observations: Iterable[Observation],
    at_seconds: float,
    *,
    method: str = "nws",
    probabilities: Sequence[float] = USUAL_PROBABILITIES,
    floor: float | None = 0.0,
    stale_after_seconds: float | None = None,
) -> ValueForecast:
    """ValueForecast a series in one call from its whole history, in any order.

    The default *floor* suits durations and rates.

    Raises:
        UnknownMethod: *method* is not a file in ``forecasting/methods/``.
        Abstained, InvalidNumber: as ``Forecaster.forecast``.
    """
    forecaster = Forecaster(method)
    for observation in observations:
        forecaster.observe(observation)
    return forecaster.forecast(
        at_seconds, probabilities=probabilities, floor=floor, stale_after_seconds=stale_after_seconds
    )


def _with_own(around: Mapping[float, float], own: Mapping[float, float]) -> dict[float, float]:
    """Return the quantiles *around* a forecast, but where the method itself has said one, its *own*: less
    probable ones are no more than that, and more probable ones no less."""
    found = dict(around)
    for promised, bound in own.items():
        for probability, value in found.items():
            if probability == promised:
                found[probability] = bound
            else:
                found[probability] = min(value, bound) if probability < promised else max(value, bound)
    return found


def _floored(point: ValueForecast, quantiles: Mapping[float, float], least: float) -> ValueForecast:
    """Return *point* with *quantiles*, no number of it below *least*."""
    return ValueForecast(
        max(point.mean, least),
        max(point.median, least),
        point.method,
        point.n,
        point.age_seconds,
        {probability: max(value, least) for probability, value in quantiles.items()},
    )
