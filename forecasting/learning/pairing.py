"""Forecasts from pairs: what a predictor showed before a run, and what the run showed then."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting import heard_values
from forecasting.base import DataAge, ForecastMethod, Source, ValueForecast
from forecasting.heard_values import Heard
from forecasting.learning.regression import Line
from forecasting.learning.scale import Typical
from forecasting.methods import nws

LEAST_PAIRS = 3


@dataclass(slots=True)
class Pairing:
    """One predictor: what it showed last, the pairs with it, and how far off forecasts from it were."""

    number: int  # in the order in which predictors were first heard of
    n: int = field(default=0, init=False)
    heard: Heard = field(default_factory=Heard, init=False)
    line: Line = field(default_factory=Line, init=False)
    newest: list[tuple[float, float]] = field(default_factory=list, init=False)
    height: float = field(default=0.0, init=False)  # of another line, at 0
    slope: float = field(default=0.0, init=False)
    miss: Typical = field(default_factory=Typical, init=False)

    def keep(self, shown: float, value: float, most: int) -> None:
        """Take a pair in among the *newest*, of which there are *most* at most."""
        self.newest.append((shown, value))
        del self.newest[:-most]


@dataclass(slots=True)
class PairedMethod(ForecastMethod):
    """A method that forecasts from pairs; its subclasses say from which of them and how.

    Of several predictors that one is used whose forecasts have missed least, of late more than long ago.
    While there are fewer than three pairs with any whose showing is known, the last value is the forecast.
    No answer is further from what was seen so far than all that was seen is apart: beyond that a straight
    line is no guide. The own stages (a source whose series is "") are no predictors.
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
        heard_values.require_usable(time_seconds, known_at_seconds, value)
        if source.series:
            self.pairing(heard_values.key(source)).heard.add(known_at_seconds, [float(value)])

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        for pairing in self._pairings.values():
            shown = pairing.heard.newest(time_seconds)
            if shown:
                self._learn(pairing, shown[0], float(value))
        self._last = float(value)
        self._least, self._most = min(self._least, self._last), max(self._most, self._last)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        answer = self.from_predictors(at_seconds)
        return self._age.forecast(self._last if answer is None else answer, self.NAME, at_seconds)

    def from_predictors(self, at_seconds: float) -> float | None:
        """The forecast, if it comes from a predictor."""
        best = self._best(at_seconds)
        return self._answer(*best) if best else None

    def predictor(self, at_seconds: float) -> Source | None:
        """The source that the forecast for *at_seconds* is made from; None: the own last value."""
        best = self._best(at_seconds)
        if not best:
            return None
        return next(heard_values.source(key) for key, pairing in self._pairings.items() if pairing is best[0])

    def pairing(self, key: str) -> Pairing:
        """What is known of the predictor *key*, from now on at least."""
        if key not in self._pairings:
            self._pairings[key] = Pairing(len(self._pairings))
        return self._pairings[key]

    def take(self, pairing: Pairing, shown: float, value: float) -> None:
        """Take one more pair in."""
        pairing.line.learn(shown, value)

    def fitted(self, pairing: Pairing, shown: float) -> float:
        """What the pairs say comes after *shown*."""
        return pairing.line.at(shown)

    def _learn(self, pairing: Pairing, shown: float, value: float) -> None:
        if pairing.n >= LEAST_PAIRS:
            pairing.miss.add(value - self._answer(pairing, shown))
        pairing.n += 1
        self.take(pairing, shown, value)

    def _best(self, at_seconds: float) -> tuple[Pairing, float] | None:
        best = None
        for pairing in self._pairings.values():
            shown = pairing.heard.newest(at_seconds)
            if shown and pairing.n >= LEAST_PAIRS and (not best or pairing.miss.size < best[0].miss.size):
                best = pairing, shown[0]
        return best

    def _answer(self, pairing: Pairing, shown: float) -> float:
        answer = self.fitted(pairing, shown)
        if not math.isfinite(answer):
            return self._last
        apart = self._most - self._least
        return max(self._least - apart, min(answer, self._most + apart))


@dataclass(slots=True)
class ExpectedPairedMethod(PairedMethod):
    """A method of which each predictor is first forecast to the time asked for, by the battery (``nws``), and
    this is what pairs are made with."""

    _expected: dict[str, nws.Method] = field(default_factory=dict, init=False)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        heard_values.require_usable(time_seconds, known_at_seconds, value)
        if source.series:
            key = heard_values.key(source)
            battery = self._expected.setdefault(key, nws.Method())
            battery.update(time_seconds, value)
            expected = battery.forecast(time_seconds).median  # whatever the time: the battery knows no clock
            self.pairing(key).heard.add(known_at_seconds, [expected])
