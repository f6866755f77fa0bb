"""The contract of a forecasting method, its answer, and the errors.

A method is a class named ``Method`` in a file of its own in ``forecasting/methods/``. An instance receives
the values of one series in the order in which they became known, and forecasts the next value at any time.

Errors::

    ForecastingError
    |-- UnknownMethod    the method is not a file in forecasting/methods/          permanent
    |-- InvalidNumber    a value, time, level or array is unusable                 permanent
    |-- OutdatedState    a stored state is damaged, or its classes have changed    permanent: rebuild it
    `-- Abstained        a forecast is not possible; ``reason`` says why           a later call may succeed
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

LARGEST_VALUE = 1e300  # sums over any real history of such values stay finite

Reason = Literal["too_few", "stale", "past"]


class ForecastingError(Exception):
    """The base class of the errors of this package."""


class UnknownMethod(ForecastingError, LookupError):
    """There is no method of this name."""


class InvalidNumber(ForecastingError, ValueError):
    """A value, a time, a level or an array is unusable."""


class OutdatedState(ForecastingError):
    """A stored state is damaged, or its classes have changed since it was stored."""


class Abstained(ForecastingError):
    """There is no forecast. *reason* is one of

    ``too_few``  fewer values are known than the forecast needs;
    ``stale``    the newest value is older than the caller accepts;
    ``past``     the forecaster has already learned values that became known after the requested time.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


class ValueForecast(NamedTuple):
    """The forecast of the next value of a series, in the unit of the series.

    Attributes:
        mean: the number that minimises the expected squared error.
        median: the number that minimises the expected absolute error; many methods use one number as mean and
            median.
        method: name of the method.
        n: number of values that the forecast uses.
        age_seconds: time from the newest used value to the requested time.
        quantiles: maps a probability in (0, 1) to the number below which the next value lies with this
            probability; empty if the method estimates no quantiles.
    """

    mean: float
    median: float
    method: str
    n: int
    age_seconds: float
    quantiles: Mapping[float, float] = MappingProxyType({})


class Source(NamedTuple):
    """The origin of a value: a *metric* of a *series*. The series "" is the series that is forecast."""

    series: str
    metric: str


class ForecastMethod(ABC):
    """A forecaster of one series, which learns from ``update`` and ``observe_predictor`` only.

    A subclass is a dataclass. Its typed fields are its whole state, so that ``forecasting.state`` can store
    the state. The same calls always lead to the same state.
    """

    __slots__ = ()

    VERSION: ClassVar[int]
    """The version of the method's state: raise it when the meaning of a field changes, so that stored states
    that use the method are rebuilt."""

    EXPERT: ClassVar[bool]
    """Whether ``blend`` uses the method."""

    EXPERT_FORECASTS: ClassVar[int] = 2
    """The number of forecasts that an expert gives to ``blend``."""

    USES_TIMES: ClassVar[bool] = False
    """Whether the forecast depends on when the values happened."""

    USES_PREDICTORS: ClassVar[bool] = False
    """Whether the method uses values of other series."""

    USES_STAGES: ClassVar[bool] = False
    """Whether the predictors are stages: of the runs of other series and of the forecast series itself."""

    @abstractmethod
    def update(self, time_seconds: float, value: float) -> None:
        """Learn the next *value*, which happened at *time_seconds*; times may repeat and go backwards.

        Raises:
            InvalidNumber: *value* or *time_seconds* is not finite, or the magnitude of *value* is above
                ``LARGEST_VALUE``; nothing was learned.
        """

    def learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        """Learn the next *value* as ``update`` does; it became known at *known_at_seconds*.

        The calls are in the order of these times. A method that scores its own forecasts overrides this
        method: the forecast to score is the one issued before *time_seconds*
        (``forecasting.learning.issued``).
        """
        del known_at_seconds
        self.update(time_seconds, value)

    @abstractmethod
    def forecast(self, at_seconds: float) -> ValueForecast:
        """Return the forecast of the value at *at_seconds*; the state does not change.

        Raises:
            Abstained: no value is known yet.
        """

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        """Learn a *value* of the predictor *source*, which happened at *time_seconds*.

        The value became known at *known_at_seconds*; the calls are in the order of these times. ``update``
        and ``forecast`` use only the predictor values that were known at the time in their arguments.

        Raises:
            InvalidNumber: *value* or a time is not finite, or the magnitude of *value* is above
                ``LARGEST_VALUE``; nothing was learned.
        """
        del source, time_seconds, known_at_seconds, value  # most methods use no predictors

    def expert_forecasts(self, at_seconds: float) -> Sequence[float]:
        """Return the ``EXPERT_FORECASTS`` forecasts that ``blend`` uses, always in the same order.

        Raises:
            Abstained: no value is known yet.
        """
        forecast = self.forecast(at_seconds)
        return forecast.median, forecast.mean

    def parts(self) -> Mapping[str, ForecastMethod]:
        """Return, by name, the methods that this method combines, including the parts of these methods."""
        return {}


@dataclass(slots=True)
class DataAge:
    """The number *n* of values that a method has learned, and the time of the newest of these values."""

    n: int = 0
    newest_seconds: float = -math.inf

    def add(self, time_seconds: float, value: float) -> None:
        """Count a value that happened at *time_seconds*.

        Raises:
            InvalidNumber: *value* or *time_seconds* is not finite, or the magnitude of *value* is above
                ``LARGEST_VALUE``.
        """
        if not is_usable(value):
            raise InvalidNumber(f"expected a finite value of at most {LARGEST_VALUE:g}, got {value!r}")
        if not math.isfinite(time_seconds):
            raise InvalidNumber(f"expected a finite time, got {time_seconds!r}")
        self.n += 1
        self.newest_seconds = max(self.newest_seconds, time_seconds)

    def forecast(
        self, mean: float, method: str, at_seconds: float, *, median: float | None = None
    ) -> ValueForecast:
        """Return a forecast of *method* for *at_seconds*; the *median* None stands for the *mean*."""
        age_seconds = max(0.0, at_seconds - self.newest_seconds)
        return ValueForecast(mean, mean if median is None else median, method, self.n, age_seconds)

    def require(self, minimum: int) -> None:
        """Raise Abstained if fewer than *minimum* values are known."""
        if self.n < minimum:
            raise Abstained("too_few", f"{self.n} values are known, {minimum} are needed")


def is_usable(value: float) -> bool:
    """Return whether methods accept *value*: finite, with a magnitude of at most ``LARGEST_VALUE``."""
    return abs(value) <= LARGEST_VALUE  # false for NaN


def require_not_past(at_seconds: float, used_until_seconds: float, noun: str) -> None:
    """Raise unless all used inputs were known at *at_seconds*.

    The newest used input became known at *used_until_seconds*; the message calls the inputs *noun*.

    Raises:
        InvalidNumber: *at_seconds* is not finite.
        Abstained: ``past``: *at_seconds* is before *used_until_seconds*.
    """
    if not math.isfinite(at_seconds):
        raise InvalidNumber(f"expected a finite time, got {at_seconds!r}")
    if at_seconds < used_until_seconds:
        late = used_until_seconds - at_seconds
        raise Abstained("past", f"{noun} that became known {late:.0f} s later are used already")
