"""A weighted mean of the forecasts of all quick methods, from the values of the series alone.

The experts are the methods of this folder with ``EXPERT = True``. One set of weights is learned for absolute
errors and blends the median. Another set is learned for squared errors and blends the mean
(``forecasting.learning.aggregation``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting import methods
from forecasting.base import Abstained, DataAge, ForecastMethod, ValueForecast
from forecasting.learning.aggregation import Aggregation
from forecasting.memo import Memo
from forecasting.state import MethodsByName


@cache
def expert_names() -> tuple[str, ...]:
    """Return the names of the methods that are experts, sorted."""
    return tuple(name for name in methods.names() if methods.load(name).EXPERT)


def _new_experts() -> MethodsByName:
    return MethodsByName({name: methods.load(name)() for name in expert_names()})


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts with the mixture of experts that has done best."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    USES_TIMES: ClassVar[bool] = True  # some experts do

    _age: DataAge = field(default_factory=DataAge, init=False)
    _experts: MethodsByName = field(default_factory=_new_experts, init=False)
    _median: Aggregation = field(default_factory=Aggregation, init=False)
    _mean: Aggregation = field(default_factory=lambda: Aggregation(squared=True), init=False)
    _expert_memo: Memo[NDArray[np.float64]] = field(default_factory=Memo, init=False, compare=False)
    _memo: Memo[ValueForecast] = field(default_factory=Memo, init=False, compare=False)

    def __post_init__(self) -> None:
        """Add the experts that a loaded state lacks; they learn from the next value on."""
        missing = [name for name in expert_names() if name not in self._experts]
        if missing:
            self._experts.update({name: methods.load(name)() for name in missing})
            count = sum(expert.EXPERT_FORECASTS for expert in self._experts.values())
            self._median.widen(count)
            self._mean.widen(count)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        if self._age.n > 1:
            forecasts = self.all_forecasts(time_seconds)
            self._median.update(forecasts, value)
            self._mean.update(forecasts, value)
        self._expert_memo.clear()
        self._memo.clear()
        for expert in self._experts.values():
            expert.update(time_seconds, value)

    def forecast(self, at_seconds: float) -> ValueForecast:
        cached = self._memo.get(at_seconds)
        if cached is not None:
            return cached
        self._age.require(1)
        forecasts = self.all_forecasts(at_seconds)
        mean, median = self._mean.blend(forecasts), self._median.blend(forecasts)
        return self._memo.keep(at_seconds, self._age.forecast(mean, "blend", at_seconds, median=median))

    def parts(self) -> Mapping[str, ForecastMethod]:
        """Return the experts, by name."""
        return self._experts

    def all_forecasts(self, at_seconds: float) -> NDArray[np.float64]:
        """Return the ``expert_forecasts`` of all experts in one array; NaN for an expert that abstains."""
        cached = self._expert_memo.get(at_seconds)
        if cached is not None:
            return cached
        forecasts = [
            forecast
            for expert in self._experts.data.values()
            for forecast in _forecasts_or_nan(expert, at_seconds)
        ]
        return self._expert_memo.keep(at_seconds, np.array(forecasts))


def _forecasts_or_nan(expert: ForecastMethod, at_seconds: float) -> Sequence[float]:
    try:
        return expert.expert_forecasts(at_seconds)
    except Abstained:
        return (math.nan,) * expert.EXPERT_FORECASTS
