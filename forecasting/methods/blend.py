"""The forecasts of all quick methods, blended: the answer where only the series itself is known.

Every method of this folder that calls itself an expert is listened to, with all its voices. Weights are
learned for absolute misses, which makes the median, and for squared ones, which makes the mean; see
``forecasting.learning.aggregation``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from forecasting import methods
from forecasting.base import Abstained, Age, Forecast
from forecasting.base import Method as AnyMethod
from forecasting.learning.aggregation import Aggregation
from forecasting.memo import Remembered
from forecasting.state import Experts


@cache
def expert_names() -> tuple[str, ...]:
    """The names of the methods that are listened to, sorted."""
    return tuple(name for name in methods.names() if methods.load(name).EXPERT)


def _begun() -> Experts:
    return Experts({name: methods.load(name)() for name in expert_names()})


@dataclass(slots=True)
class Method:
    """Forecasts with the experts that have been right together."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    TIMELESS: ClassVar[bool] = False  # some experts are not

    _age: Age = field(default_factory=Age, init=False)
    _experts: Experts = field(default_factory=_begun, init=False)
    _median: Aggregation = field(default_factory=Aggregation, init=False)
    _mean: Aggregation = field(default_factory=lambda: Aggregation(squared=True), init=False)
    _said: Remembered[NDArray[np.float64]] = field(default_factory=Remembered, init=False, compare=False)
    _answer: Remembered[Forecast] = field(default_factory=Remembered, init=False, compare=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.note(time_seconds, value)
        if self._age.n > 1:
            said = self.said(time_seconds)
            self._median.update(said, value)
            self._mean.update(said, value)
        self._said.forget()
        self._answer.forget()
        for expert in self._experts.values():
            expert.update(time_seconds, value)

    def forecast(self, at_seconds: float) -> Forecast:
        known = self._answer.at(at_seconds)
        if known is not None:
            return known
        self._age.require(1)
        said = self.said(at_seconds)
        mean, median = self._mean.blend(said), self._median.blend(said)
        return self._answer.keep(at_seconds, self._age.forecast(mean, "blend", at_seconds, median=median))

    def parts(self) -> Mapping[str, AnyMethod]:
        """The experts."""
        return self._experts

    def said(self, at_seconds: float) -> NDArray[np.float64]:
        """Return what each voice of each expert expects at *at_seconds*; NaN for who has no answer."""
        known = self._said.at(at_seconds)
        if known is not None:
            return known
        voices = [voice for expert in self._experts.data.values() for voice in _voices(expert, at_seconds)]
        return self._said.keep(at_seconds, np.array(voices))


class _Choir(Protocol):
    """An expert with several numbers to offer: ``VOICES`` of them, always in one order."""

    VOICES: ClassVar[int]

    def voices(self, at_seconds: float) -> Sequence[float]: ...


def _voices(expert: AnyMethod, at_seconds: float) -> Sequence[float]:
    """What *expert* has to say: its voices if it has many, or else its median and its mean."""
    try:
        if hasattr(expert, "voices"):
            return cast("_Choir", expert).voices(at_seconds)
        forecast = expert.forecast(at_seconds)
    except Abstained:
        return (math.nan,) * getattr(expert, "VOICES", 2)
    return forecast.median, forecast.mean
