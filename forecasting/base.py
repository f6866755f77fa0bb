"""What a forecasting method is, what it answers, and what goes wrong.

A method is a class named ``Method`` in a file of its own in ``forecasting/methods/``. It is told the values
of one series in the order in which they became known, and says at any moment what it expects next.

Errors::

    ForecastingError
    |-- UnknownMethod    no such file in forecasting/methods/                        for good
    |-- InvalidNumber    a value, time, level or array that cannot be worked with    for good
    `-- Abstained        no answer that would deserve trust; ``reason`` says why     again
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

LARGEST = 1e300  # sums over any real history of such values stay finite

Reason = Literal["too_few", "stale", "past"]


class ForecastingError(Exception):
    """Root of what goes wrong around forecasts."""


class UnknownMethod(ForecastingError, LookupError):
    """No method of that name."""


class InvalidNumber(ForecastingError, ValueError):
    """A value, a time, a level or an array that cannot be worked with."""


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

    *quantiles* maps a probability in (0, 1) to the value that is undercut with this probability; it is empty
    when the method has no opinion. *n* values were used; the newest happened *age_seconds* before the time
    asked about.
    """

    mean: float
    method: str
    n: int
    age_seconds: float
    quantiles: Mapping[float, float] = field(default_factory=dict)


class Method(Protocol):
    """A forecaster of one series. Everything that it knows, it was told through ``update``."""

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


@dataclass
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

    def forecast(self, mean: float, method: str, at_seconds: float) -> Forecast:
        """Return *mean* as the forecast of *method*; an age is never negative, whatever the clocks."""
        return Forecast(mean, method, self.n, max(0.0, at_seconds - self.newest_seconds))

    def require(self, least: int) -> None:
        """Raise Abstained unless at least *least* values are known."""
        if self.n < least:
            raise Abstained("too_few", f"{self.n} values are known, {least} are needed")


def is_usable(value: float) -> bool:
    """Tell whether *value* is a number that every method can work with."""
    return abs(value) <= LARGEST  # false for NaN
