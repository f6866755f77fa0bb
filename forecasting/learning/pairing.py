"""Forecast from pairs: the value of a run, and the predictor's newest value known when the run started."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting import predictor_values
from forecasting.base import DataAge, ForecastMethod, Source, ValueForecast
from forecasting.learning.regression import LeastSquaresLine
from forecasting.learning.scale import TypicalSize
from forecasting.methods import nws
from forecasting.predictor_values import PredictorValues

MIN_PAIRS = 3


@dataclass(slots=True)
class Pairing:
    """One predictor: its newest values, its pairs, and the errors of the forecasts from the pairs."""

    number: int  # the position of the predictor, by the time of its first value
    n: int = field(default=0, init=False)
    values: PredictorValues = field(default_factory=PredictorValues, init=False)
    line: LeastSquaresLine = field(default_factory=LeastSquaresLine, init=False)
    newest: list[tuple[float, float]] = field(default_factory=list, init=False)
    height: float = field(default=0.0, init=False)  # of the robust line (``lrp_robust``), at 0
    slope: float = field(default=0.0, init=False)
    error: TypicalSize = field(default_factory=TypicalSize, init=False)

    def keep(self, predictor_value: float, value: float, maximum: int) -> None:
        """Append the pair (*predictor_value*, *value*) to *newest*; keep at most *maximum* pairs."""
        self.newest.append((predictor_value, value))
        del self.newest[:-maximum]


@dataclass(slots=True)
class PairedMethod(ForecastMethod):
    """A method that forecasts from pairs; subclasses decide which pairs to use, and how.

    The predictor with the least error is used; recent errors weigh more. While no predictor has three pairs,
    the last value is the forecast. A forecast lies outside the range of earlier values by at most the width
    of this range, since a straight line is no guide beyond this distance. The stages of the series' own runs
    (a source whose series is "") are no predictors.
    """

    USES_PREDICTORS: ClassVar[bool] = True
    NAME: ClassVar[str]

    _age: DataAge = field(default_factory=DataAge, init=False)
    _last: float = field(default=0.0, init=False)
    _least: float = field(default=math.inf, init=False)
    _most: float = field(default=-math.inf, init=False)
    _pairings: dict[str, Pairing] = field(default_factory=dict, init=False)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        predictor_values.require_usable(time_seconds, known_at_seconds, value)
        if source.series:
            self.pairing(predictor_values.key(source)).values.add(known_at_seconds, [float(value)])

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        for pairing in self._pairings.values():
            row = pairing.values.newest(time_seconds)
            if row:
                self._learn(pairing, row[0], float(value))
        self._last = float(value)
        self._least, self._most = min(self._least, self._last), max(self._most, self._last)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        value = self.forecast_from_predictor(at_seconds)
        return self._age.forecast(self._last if value is None else value, self.NAME, at_seconds)

    def forecast_from_predictor(self, at_seconds: float) -> float | None:
        """Return the forecast from the best predictor; None if no predictor is usable."""
        best = self._best(at_seconds)
        return self._limited(*best) if best else None

    def predictor(self, at_seconds: float) -> Source | None:
        """Return the predictor used for *at_seconds*; None if the forecast is the last value."""
        best = self._best(at_seconds)
        if not best:
            return None
        return next(
            predictor_values.source(key) for key, pairing in self._pairings.items() if pairing is best[0]
        )

    def pairing(self, key: str) -> Pairing:
        """Return the pairing with the predictor *key*; the first call for a key creates the pairing."""
        if key not in self._pairings:
            self._pairings[key] = Pairing(len(self._pairings))
        return self._pairings[key]

    def add_pair(self, pairing: Pairing, predictor_value: float, value: float) -> None:
        """Learn the pair of *predictor_value* and *value*."""
        pairing.line.learn(predictor_value, value)

    def fitted(self, pairing: Pairing, predictor_value: float) -> float:
        """Return the value that the pairs predict for *predictor_value*."""
        return pairing.line.at(predictor_value)

    def _learn(self, pairing: Pairing, predictor_value: float, value: float) -> None:
        if pairing.n >= MIN_PAIRS:
            pairing.error.add(value - self._limited(pairing, predictor_value))
        pairing.n += 1
        self.add_pair(pairing, predictor_value, value)

    def _best(self, at_seconds: float) -> tuple[Pairing, float] | None:
        best = None
        for pairing in self._pairings.values():
            row = pairing.values.newest(at_seconds)
            if row and pairing.n >= MIN_PAIRS and (not best or pairing.error.size < best[0].error.size):
                best = pairing, row[0]
        return best

    def _limited(self, pairing: Pairing, predictor_value: float) -> float:
        value = self.fitted(pairing, predictor_value)
        if not math.isfinite(value):
            return self._last
        apart = self._most - self._least
        return max(self._least - apart, min(value, self._most + apart))


@dataclass(slots=True)
class ExpectedPairedMethod(PairedMethod):
    """Pairs each value with the forecast of the predictor by the battery (``nws``), not with its value."""

    _batteries: dict[str, nws.Method] = field(default_factory=dict, init=False)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        predictor_values.require_usable(time_seconds, known_at_seconds, value)
        if source.series:
            key = predictor_values.key(source)
            battery = self._batteries.setdefault(key, nws.Method())
            battery.update(time_seconds, value)
            expected = battery.forecast(time_seconds).median  # at any time: the battery uses no times
            self.pairing(key).values.add(known_at_seconds, [expected])
