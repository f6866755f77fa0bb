"""What a forecasting method is, what it answers, and what goes wrong.

A method is a class named ``Method`` in a file of its own in ``forecasting/methods/``. It is told the values
of one series in the order in which they became known, and says at any moment what it expects next.

Errors::

    ForecastingError
    |-- UnknownMethod    no such file in forecasting/methods/                        for good
    |-- InvalidNumber    a value, time, level or array that cannot be worked with    for good
    |-- Outdated         a kept state that was written by other methods than today's for good: begin anew
    `-- Abstained        no answer that would deserve trust; ``reason`` says why     again
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

LARGEST = 1e300  # sums over any real history of such values stay finite

Reason = Literal["too_few", "stale", "past"]


class ForecastingError(Exception):
    """Root of what goes wrong around forecasts."""


class UnknownMethod(ForecastingError, LookupError):
    """No method of that name."""


class InvalidNumber(ForecastingError, ValueError):
    """A value, a time, a level or an array that cannot be worked with."""


class Outdated(ForecastingError):
    """A kept state that cannot be gone on with: its methods have changed since, or it is damaged."""


class Abstained(ForecastingError):
    """No forecast. *reason* is one of

    ``too_few``  less is known than an answer needs; more values will help;
    ``stale``    the newest value is older than the caller accepts;
    ``past``     asked about a time before values that were used already: that would not be a forecast.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(frozen=True)
class Forecast:
    """The next value of a series, in the unit of the series.

    *mean* is the answer for who pays for squared errors, *median* for absolute ones; many methods have one
    number for both. *quantiles* maps a probability in (0, 1) to the value that is undercut with this
    probability; it is empty when the method has no opinion. *n* values were used; the newest happened
    *age_seconds* before the time asked about.
    """

    mean: float
    median: float
    method: str
    n: int
    age_seconds: float
    quantiles: Mapping[float, float] = field(default_factory=dict)


class Source(NamedTuple):
    """Where a heard value is from: the *metric* of a *series*; "" is the series that is forecast itself."""

    series: str
    metric: str


class Method(Protocol):
    """A forecaster of one series. Everything that it knows, it was told through ``update``.

    It is a dataclass whose typed fields are its whole state, so that ``forecasting.state`` keeps any of them,
    and the same calls always lead to the same state. *VERSION* rises when what the fields mean changes.
    *EXPERT* says whether ``blend`` listens to it.
    """

    VERSION: ClassVar[int]
    EXPERT: ClassVar[bool]

    def update(self, time_seconds: float, value: float) -> None:
        """Learn the next *value*, which happened at *time_seconds*; times may repeat and go backwards.

        Raises:
            InvalidNumber: not finite, or beyond ``LARGEST``; nothing was learned.
        """

    def forecast(self, at_seconds: float) -> Forecast:
        """Say what is expected at *at_seconds*. Changes nothing.

        Raises:
            Abstained: no value is known yet.
        """


@runtime_checkable
class Hearing(Method, Protocol):
    """A forecaster that also listens to what other series, such as probes, show."""

    def hear(self, source: Source, time_seconds: float, known_at_seconds: float, value: float) -> None:
        """Take note of a *value* of *source*, which happened at *time_seconds* and was known from
        *known_at_seconds* on; in the order of becoming known.

        What is paired with a value of ``update``, or used by ``forecast``, was known at the time of those.

        Raises:
            InvalidNumber: not finite, or beyond ``LARGEST``; nothing was learned.
        """


@runtime_checkable
class Composite(Method, Protocol):
    """A forecaster made of others that can be asked by themselves."""

    def parts(self) -> Mapping[str, Method]:
        """The methods it is made of, by name; parts of parts included."""


@dataclass(slots=True)
class Age:
    """How much a method was told, and when the newest of it happened. Refuses what no method can use."""

    n: int = 0
    newest_seconds: float = -math.inf

    def note(self, time_seconds: float, value: float) -> None:
        """Count one value, or raise InvalidNumber."""
        if not is_usable(value):
            raise InvalidNumber(f"expected a finite value of at most {LARGEST:g}, got {value!r}")
        if not math.isfinite(time_seconds):
            raise InvalidNumber(f"expected a finite time, got {time_seconds!r}")
        self.n += 1
        self.newest_seconds = max(self.newest_seconds, time_seconds)

    def forecast(
        self, mean: float, method: str, at_seconds: float, *, median: float | None = None
    ) -> Forecast:
        """Return *mean* as the forecast of *method*, and as its median where none is given; an age is never
        negative, whatever the clocks."""
        age_seconds = max(0.0, at_seconds - self.newest_seconds)
        return Forecast(mean, mean if median is None else median, method, self.n, age_seconds)

    def require(self, least: int) -> None:
        """Raise Abstained unless at least *least* values are known."""
        if self.n < least:
            raise Abstained("too_few", f"{self.n} values are known, {least} are needed")


def is_usable(value: float) -> bool:
    """Tell whether *value* is a number that every method can work with."""
    return abs(value) <= LARGEST  # false for NaN


def require_no_past(at_seconds: float, used_until_seconds: float, what: str) -> None:
    """Raise unless nothing is in use that was not known at *at_seconds*; *what* it is that is used.

    Raises:
        InvalidNumber: the time is not finite.
        Abstained: ``past``: it is before *used_until_seconds*.
    """
    if not math.isfinite(at_seconds):
        raise InvalidNumber(f"expected a finite time, got {at_seconds!r}")
    if at_seconds < used_until_seconds:
        late = used_until_seconds - at_seconds
        raise Abstained("past", f"{what} of {late:.0f} s later are in use")
