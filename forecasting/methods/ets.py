"""Exponential smoothing as a state space model, its parameters fitted by maximum likelihood (statsmodels).

There are two models: a level, and a level with a damped trend (A,N,N and A,Ad,N of Hyndman, Koehler, Ord,
Snyder, "Forecasting with Exponential Smoothing", 2008). A fit estimates both models from the last 500 values
and keeps the model with the lower corrected Akaike criterion. The first fit is at 20 values; the next fit is
due whenever the number of values has grown by half. An additional fit follows, at least 20 values after the
last fit, if the forecast errors are mostly on one side, as after a level shift that slow parameters do not
follow: if the smoothed error exceeds half of the smoothed absolute error (Trigg, "Monitoring a forecasting
system", Operational Research Quarterly 15, 1964). Between fits each value updates the filter by a few
multiplications; the result is the same as with ``append`` of statsmodels.

The import of statsmodels needs two seconds and 150 MiB, so it happens at the first fit. The matrices of a fit
have three rows, so more than one thread makes a fit slower: run forecasters with ``OPENBLAS_NUM_THREADS=1``.
The number of iterations is limited. If a fit fails, or exceeds its time limit, the parameters stay as they
are.

Before the model learns a value, the value is moved to within three typical errors of its forecast: a model
that is fitted by squared errors would follow outliers.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.scale import TypicalSize

FIRST_FIT = 20
GROWTH = 1.5  # factor of the number of values between two fits
FITTED_VALUES = 500
_MOST_ITERATIONS = 30
MAX_FIT_SECONDS = 5.0  # a hundred times the usual duration
_REACH = 3.0  # typical errors
_BIAS_RATE = 0.05
_LARGEST_SIGNAL = 0.5  # 1 means all errors on one side; chance exceeds 0.5 once in some hundred values
_LEAST_SPREAD = 1e-9  # share of the values' size: a smaller spread is rounding of a constant


@dataclass(slots=True)
class Smoother:
    """The state and the parameters of a model. The defaults serve before the first fit; they have no trend.

    A value moves the level by *gain* times the forecast error of the value, and the trend by *trend_gain*
    times this error. Each step multiplies the trend by *damping*.
    """

    gain: float = 0.2
    trend_gain: float = 0.0
    damping: float = 0.0
    level: float = 0.0
    trend: float = 0.0

    def expected(self, steps: float = 1.0) -> float:
        """Return the forecast for *steps* values after the newest value; *steps* is at least 1."""
        damping = self.damping
        return self.level + self.trend * damping * (1.0 - math.pow(damping, steps)) / (1.0 - damping)

    def learn(self, value: float) -> None:
        """Learn the next *value*."""
        expected = self.expected()
        error = value - expected
        self.level = expected + self.gain * error
        self.trend = self.damping * self.trend + self.trend_gain * error


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts with the smoother of the last fit; errors are assumed normal, so the median is the mean."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False  # local_level and local_linear_trend do as well without fits
    USES_TIMES: ClassVar[bool] = True  # a trend continues with time

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _smoother: Smoother = field(default_factory=Smoother, init=False)
    _typical_error: TypicalSize = field(default_factory=TypicalSize, init=False)
    _bias: float = field(default=0.0, init=False)
    _fitted_at: int = field(default=0, init=False)
    _next_fit: int = field(default=FIRST_FIT, init=False)
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=FITTED_VALUES), init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._cadence.add(time_seconds)
        value = float(value)
        if self._age.n == 1:
            self._smoother.level = value
        else:
            value = self._cut(value)
        self._smoother.learn(value)
        self._keep(value)
        if self._age.n >= self._next_fit or self._has_lost_track():
            self._fit()

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        steps = max(self._cadence.ahead(at_seconds), 1.0)
        return self._age.forecast(self._smoother.expected(steps), "ets", at_seconds)

    def _cut(self, value: float) -> float:
        expected = self._smoother.expected()
        self._typical_error.add(value - expected)
        reach = _REACH * self._typical_error.size
        error = min(max(value - expected, -reach), reach)
        self._bias += _BIAS_RATE * (error - self._bias)
        return expected + error

    def _has_lost_track(self) -> bool:
        if not 0 < self._fitted_at <= self._age.n - FIRST_FIT:
            return False
        return abs(self._bias) > _LARGEST_SIGNAL * self._typical_error.size

    def _fit(self) -> None:
        self._next_fit = int(GROWTH * self._age.n)
        self._fitted_at = self._age.n
        self._bias = 0.0
        self._smoother = fitted(np.array(self._recent)) or self._smoother

    def _keep(self, value: float) -> None:
        if len(self._recent) == FITTED_VALUES:  # deque(maxlen=...) is lost when a state is loaded
            self._recent.popleft()
        self._recent.append(value)


class _FitTimedOut(Exception):
    """A fit exceeded its time limit."""


def fitted(values: NDArray[np.float64], max_seconds: float = MAX_FIT_SECONDS) -> Smoother | None:
    """Return the smoother that fits *values* best, in its state after the last value; None if no fit works.

    There must be at least ``FIRST_FIT`` values, of any magnitude. The result is None if the values are
    constant, or if both models fail. The fit of a model fails after *max_seconds*.
    """
    largest = np.abs(values).max() or 1.0
    scaled = values / largest  # squares of the largest numbers would not be finite
    center, spread = scaled.mean(), scaled.std()
    if spread < _LEAST_SPREAD:
        return None
    numbers = (scaled - center) / spread
    fits = [_fit(numbers, max_seconds, trend=trend) for trend in (False, True)]
    _, smoother = min(fits, key=_criterion)
    if smoother is None:
        return None
    smoother.level = float((center + spread * smoother.level) * largest)
    smoother.trend = float(spread * smoother.trend * largest)
    return smoother


def _criterion(fit: tuple[float, Smoother | None]) -> float:
    return fit[0]


def _fit(numbers: NDArray[np.float64], max_seconds: float, *, trend: bool) -> tuple[float, Smoother | None]:
    """Fit one model; return (Akaike criterion, smoother), or (infinity, None) if the fit failed.

    *trend* selects the model with a damped trend. The fit fails after *max_seconds*.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # reaching the limit of iterations is normal
            model = state_space(numbers, trend=trend)
            started = monotonic()

            def stop_if_late(_parameters: object) -> None:
                if monotonic() - started > max_seconds:
                    raise _FitTimedOut

            parameters = model.fit(
                disp=0, maxiter=_MOST_ITERATIONS, callback=stop_if_late, return_params=True
            )
            filtered = model.filter(parameters)
    except (_FitTimedOut, ValueError, ArithmeticError, np.linalg.LinAlgError):
        return np.inf, None
    state = filtered.filter_results.filtered_state[1:, -1]  # row 0 is the error
    numbers_of_fit = np.concatenate([parameters, state])
    if not np.isfinite([filtered.aicc, *numbers_of_fit]).all():
        return np.inf, None
    return float(filtered.aicc), _smoother(*map(float, numbers_of_fit))


def _smoother(gain: float, *others: float) -> Smoother:
    if len(others) == 1:
        return Smoother(gain, level=others[0])
    trend_gain, damping, level, trend = others
    return Smoother(gain, trend_gain, damping, level, trend)


def state_space(numbers: NDArray[np.float64], *, trend: bool) -> Any:
    """Return the statsmodels model of *numbers*, with a damped trend if *trend*.

    A line through the first ten numbers is the initial state.
    """
    from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing  # noqa: PLC0415

    return ExponentialSmoothing(numbers, trend=trend, damped_trend=trend, initialization_method="heuristic")
