"""The forecaster battery of the Network Weather Service, release 2.0.5.

18 simple *primaries* (``forecasting.learning.battery``) forecast the next value. Each of 16 *selectors*
answers with the primary whose errors were least: over all history or over the last few errors, squared or
absolute. Two final *picks* choose among the selectors by the selectors' own errors over all history: least
mean squared (MSE) or absolute (MAE) error. Among equal errors the first in order wins. Sources: R. Wolski,
"Dynamically forecasting network performance using the Network Weather Service", Cluster Computing 1 (1998);
R. Wolski, N. Spring, J. Hayes, "The Network Weather Service", Future Generation Computer Systems 15 (1999);
and the output of the released program.

``Method(exact=True)`` answers as the released program does, bit for bit, oddities included:

- smoothers forecast 0 before there are data, and the error of this forecast counts;
- the MAE pick counts as a forecast of 0 for the first value;
- at most 97 of the last errors are used, and from 98 errors on sums are divided by 98;
- an adaptive median tries a window as wide as its step instead of its width minus or plus its step.

``Method()`` has none of these oddities: nothing is scored before there are data, 100 errors are kept, and an
adaptive median tries the next wider and the next narrower window within its limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.battery import PRIMARIES, SMOOTHERS, Primaries

__all__ = ["PRIMARIES", "Loss", "Method", "Pick"]

Loss = Literal["mae", "mse"]

_WINDOWS = (1, 5, 10, 20, 30, 50, 100)
_SELECTORS = 2 + 2 * len(_WINDOWS)
_KEPT_ERRORS = 100
_VISIBLE_SUMS = 98  # of the original's ring of 100
_LARGEST_KEPT = 1e38  # errors are kept in single precision: they are only compared with each other
_LARGEST_SQUARABLE = 1e150
_MAE, _MSE = 0, 1  # the first index of all arrays that exist for both losses
_LEAVING = (np.arange(_KEPT_ERRORS)[:, np.newaxis] - np.array(_WINDOWS)) % _KEPT_ERRORS


@dataclass(frozen=True)
class Pick:
    """A final answer.

    Attributes:
        forecast: the forecast of the next value.
        error: the mean error of the earlier answers.
        primary: index in ``PRIMARIES`` of the forecaster that gave the answer.
    """

    forecast: float
    error: float
    primary: int


@dataclass(slots=True)
class Errors:
    """Sums of the primaries' absolute and squared errors, over all history and over the last few errors."""

    _added: int = field(default=0, init=False)
    _totals: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, len(PRIMARIES))), init=False)
    _ring: NDArray[np.float32] = field(
        default_factory=lambda: np.zeros((_KEPT_ERRORS, len(PRIMARIES)), np.float32), init=False
    )
    _sums: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((2, len(_WINDOWS), len(PRIMARIES))), init=False
    )

    def add(self, errors: NDArray[np.float64]) -> None:
        """Add *errors*: a row of the absolute errors of the primaries, and a row of their squares."""
        self._totals += errors
        at = self._added % _KEPT_ERRORS
        added = _with_squares(np.minimum(errors[0], _LARGEST_KEPT).astype(np.float32))
        removed = _with_squares(self._ring[_LEAVING[at]])
        self._sums += added[:, np.newaxis] - removed
        self._ring[at] = added[0]
        self._added += 1
        if at == _KEPT_ERRORS - 1:  # the ring is in order of time: sum it again without rounding errors
            for row, window in enumerate(_WINDOWS):
                self._sums[:, row] = _with_squares(self._ring[-window:]).sum(1)

    def selected(self) -> list[int]:
        """Return for each selector the index of the primary that the selector chooses."""
        mae, mse = self._totals.argmin(1).tolist()
        recent_mae, recent_mse = self._sums.argmin(2).tolist()
        return [mse, mae, *recent_mse, *recent_mae]


@dataclass(slots=True)
class OriginalErrors:
    """``Errors`` as the original program computes them: differences in a ring of sums over all history."""

    _added: int = field(default=0, init=False)
    _ring: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((_VISIBLE_SUMS, 2, len(PRIMARIES))), init=False
    )

    def add(self, errors: NDArray[np.float64]) -> None:
        """Add *errors*: a row of the absolute errors of the primaries, and a row of their squares."""
        newest = self._sums_before(0)
        self._added += 1
        self._ring[self._added % _VISIBLE_SUMS] = newest + errors

    def selected(self) -> list[int]:
        """Return for each selector the index of the primary that the selector chooses."""
        scored = self._added - 1  # smoothers have one more: their forecast before there were data
        counts = np.array([scored + (index in SMOOTHERS) for index in range(len(PRIMARIES))])
        newest = self._sums_before(0)
        means = np.divide(newest, counts, out=np.full_like(newest, np.inf), where=counts > 0)
        reach = max(min(scored, _VISIBLE_SUMS) - 1, 0)
        windows = [min(window, reach) for window in _WINDOWS]
        recent = [(newest - self._sums_before(window)) / window if window else means for window in windows]
        mae, mse = np.array([means, *recent]).argmin(2).T.tolist()
        return [mse[0], mae[0], *mse[1:], *mae[1:]]

    def _sums_before(self, errors: int) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self._ring[(self._added - errors) % _VISIBLE_SUMS]
        return sums


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the MAE pick as the median and the MSE pick as the mean."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = len(PRIMARIES) + 2

    exact: bool = False
    _age: DataAge = field(default_factory=DataAge, init=False)
    _primaries: Primaries = field(default_factory=Primaries, init=False)
    _forecasts: list[float] = field(default_factory=list, init=False)  # one for each primary
    _errors: Errors = field(default_factory=Errors, init=False)
    _original_errors: OriginalErrors | None = field(default=None, init=False)  # replaces _errors if exact
    _selected: list[int] = field(default_factory=list, init=False)  # the index of a primary for each selector
    _selector_totals: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((2, _SELECTORS)), init=False
    )
    _picked: list[int] = field(default_factory=lambda: [0, 0], init=False)  # the indexes of primaries
    _pick_totals: list[float] = field(default_factory=lambda: [0.0, 0.0], init=False)

    def __post_init__(self) -> None:
        if self.exact and self._original_errors is None:
            self._primaries, self._original_errors = Primaries(exact=True), OriginalErrors()

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        value = float(value)
        if self._forecasts:
            self._score(value)
        elif self.exact:
            self._score_nothing(value)
        self._forecasts = self._primaries.updated(value)
        self._select()

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        mae, mse = (self._forecasts[primary] for primary in self._picked)
        return self._age.forecast(mse, "nws", at_seconds, median=mae)

    def expert_forecasts(self, _at_seconds: float) -> Sequence[float]:
        """Return the forecasts of ``PRIMARIES``, then the MAE pick and the MSE pick.

        Raises:
            Abstained: no value is known yet.
        """
        self._age.require(1)
        return [*self._forecasts, *(self._forecasts[primary] for primary in self._picked)]

    def primaries(self) -> Sequence[float]:
        """Return the primaries' forecasts in the order of ``PRIMARIES``; empty before the first value."""
        return self._forecasts

    def pick(self, loss: Loss) -> Pick:
        """Return the final answer for *loss*: the MAE pick for "mae", the MSE pick for "mse".

        The error of the MSE pick is a mean square.

        Raises:
            Abstained: no value is known yet.
        """
        self._age.require(1)
        index = _MAE if loss == "mae" else _MSE
        scored = self._age.n if self.exact and loss == "mae" else self._age.n - 1
        error = self._pick_totals[index] / scored if scored else 0.0
        return Pick(self._forecasts[self._picked[index]], error, self._picked[index])

    def _score(self, value: float) -> None:
        """Add the errors of all primaries, selectors and picks at *value* to their sums."""
        errors = _with_squares(np.abs(np.array(self._forecasts) - value))
        for index, primary in enumerate(self._picked):
            self._pick_totals[index] += float(errors[index, primary])
        self._selector_totals += errors.take(self._selected, axis=1)
        self._scores().add(errors)

    def _score_nothing(self, value: float) -> None:
        """Score the first *value* as the original program does: MAE pick and smoothers had forecast 0."""
        self._pick_totals[_MAE] += abs(value)
        errors = np.zeros(len(PRIMARIES))
        errors[SMOOTHERS.start : SMOOTHERS.stop] = abs(value)
        self._scores().add(_with_squares(errors))

    def _select(self) -> None:
        """Choose a primary for each selector, and a selector for each pick."""
        self._selected = self._scores().selected()
        scored = self._age.n - 1
        divisor = min(scored, _VISIBLE_SUMS) if self.exact else scored
        best = (self._selector_totals / divisor).argmin(1).tolist() if divisor else [0, 0]
        self._picked = [self._selected[selector] for selector in best]

    def _scores(self) -> Errors | OriginalErrors:
        return self._original_errors or self._errors


def _with_squares(errors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return an array of *errors* and of their squares, which are limited so that sums stay finite."""
    both = np.empty((2, *errors.shape))
    both[0] = errors
    np.square(np.minimum(both[0], _LARGEST_SQUARABLE), out=both[1])
    return both
