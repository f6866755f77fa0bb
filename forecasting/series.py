"""A series as it became known, and the forecaster that follows it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from forecasting import methods
from forecasting.base import Abstained, Forecast, InvalidNumber, Method, is_usable
from forecasting.intervals import LEAST_RESIDUALS, Residuals, around, lower_tail

LEAST_VALUES = LEAST_RESIDUALS + 1


@dataclass(frozen=True)
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


class Forecaster:
    """One method following one series, with an interval from its own one-step misses.

    Observations may be handed over in any order and early: each is used from the first forecast on that asks
    about a time at which it was known, in the order in which they became known (of equals, by time and value,
    so that the order of arrival never matters). Those that are not usable numbers are left out and counted in
    ``dropped``.
    """

    def __init__(self, method: Method, *, residual_window: int = 100) -> None:
        self.dropped = 0
        self._method = method
        self._residuals = Residuals(residual_window)
        self._waiting: list[tuple[float, float, float]] = []  # a heap of known at, time, value
        self._used = 0
        self._used_until_seconds = -math.inf

    def observe(self, observation: Observation) -> None:
        """Take note of *observation*; it is used once it is known."""
        if observation.usable:
            when_known = observation.known_at_seconds
            heapq.heappush(self._waiting, (when_known, observation.time_seconds, observation.value))
        else:
            self.dropped += 1

    def forecast(
        self,
        at_seconds: float,
        *,
        level: float = 0.8,
        floor: float | None = None,
        stale_after_seconds: float | None = None,
    ) -> Forecast:
        """Say what to expect at *at_seconds*, from what was known then.

        The quantiles are the two ends of the interval that covers *level*: 0.1 and 0.9 for 0.8. No number is
        below *floor*.

        Raises:
            Abstained: ``too_few`` below 3 values; ``stale`` if the newest is older than
                *stale_after_seconds*; ``past`` if values are in use that were not known at *at_seconds*.
            InvalidNumber: the time is not finite, or *level* not inside (0, 1).
        """
        tail = lower_tail(level)
        self._learn_until(at_seconds)
        if self._used < LEAST_VALUES:
            raise Abstained("too_few", f"{self._used} values are known, {LEAST_VALUES} are needed")
        point = self._method.forecast(at_seconds)
        if stale_after_seconds is not None and point.age_seconds > stale_after_seconds:
            limits = f"{point.age_seconds:.0f} s old, accepted are {stale_after_seconds:.0f} s"
            raise Abstained("stale", f"the newest value is {limits}")
        lower, upper = around(point.mean, self._residuals.interval(level), floor)
        mean = point.mean if floor is None else max(point.mean, floor)
        return replace(point, mean=mean, quantiles={tail: lower, round(1.0 - tail, 12): upper})

    def _learn_until(self, at_seconds: float) -> None:
        if not math.isfinite(at_seconds):
            raise InvalidNumber(f"expected a finite time, got {at_seconds!r}")
        if at_seconds < self._used_until_seconds:
            raise Abstained(
                "past", f"values of {self._used_until_seconds - at_seconds:.0f} s later are in use"
            )
        while self._waiting and self._waiting[0][0] <= at_seconds:
            known_at_seconds, time_seconds, value = heapq.heappop(self._waiting)
            self._learn(time_seconds, value)
            self._used_until_seconds = max(self._used_until_seconds, known_at_seconds)

    def _learn(self, time_seconds: float, value: float) -> None:
        if self._used:
            self._residuals.add(value - self._method.forecast(time_seconds).mean)
        self._method.update(time_seconds, value)
        self._used += 1


def forecast_history(
    observations: Iterable[Observation],
    at_seconds: float,
    *,
    method: str = "nws",
    level: float = 0.8,
    floor: float | None = 0.0,
    stale_after_seconds: float | None = None,
) -> Forecast:
    """Forecast a series in one call from its whole history, in any order.

    The default *floor* suits durations and rates.

    Raises:
        UnknownMethod: *method* is not a file in ``forecasting/methods/``.
        Abstained, InvalidNumber: as ``Forecaster.forecast``.
    """
    forecaster = Forecaster(methods.load(method)())
    for observation in observations:
        forecaster.observe(observation)
    return forecaster.forecast(at_seconds, level=level, floor=floor, stale_after_seconds=stale_after_seconds)
