"""A weighted mean of the forecasts of all quick methods, from the values of the series alone.

The experts are the methods of this folder with ``EXPERT = True``, and ``fading_median`` once runs overlap.
One set of weights is learned for absolute errors and blends the median. Another set is learned for squared
errors and blends the mean (``forecasting.learning.aggregation``). If other runs ended while a run was under
way, the experts are judged by the forecasts that they had issued before it started
(``forecasting.learning.issued``). In proportion to the share of runs that overlap, ``fading_median`` replaces
the blend: few bursts say too little about many experts. If the last value has been clearly better than this
median, it replaces the median (``forecasting.learning.safeguard``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain, takewhile
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting import methods
from forecasting.base import Abstained, DataAge, ForecastMethod, ValueForecast
from forecasting.learning.aggregation import Aggregation
from forecasting.learning.fading import FadingValues
from forecasting.learning.issued import IssuedAnswer, IssuedAnswers
from forecasting.learning.safeguard import Safeguard
from forecasting.memo import Memo
from forecasting.methods import fading_median
from forecasting.prior import LossesByExpert, Prior
from forecasting.state import MethodsByName

_FOR_OVERLAP = "fading_median"  # joins the experts with the first run that overlaps another
_ISSUED_ROWS = 64  # an older answer than the one before the start is unfair to the last value above all


@cache
def expert_names() -> tuple[str, ...]:
    """Return the names of the methods that are experts, sorted."""
    return tuple(name for name in methods.names() if methods.load(name).EXPERT)


def _new(names: Iterable[str]) -> MethodsByName:
    return MethodsByName({name: methods.load(name)() for name in names})


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts with the mixture of experts that has done best."""

    VERSION: ClassVar[int] = 6
    EXPERT: ClassVar[bool] = False
    USES_TIMES: ClassVar[bool] = True  # some experts do

    _age: DataAge = field(default_factory=DataAge, init=False)
    _experts: MethodsByName = field(default_factory=lambda: _new(expert_names()), init=False)
    _median: Aggregation = field(default_factory=Aggregation, init=False)
    _mean: Aggregation = field(default_factory=lambda: Aggregation(squared=True), init=False)
    # places among all forecasts: of the last value (the battery's first), of the median for overlap
    _last_value: int = field(default=0, init=False)
    _for_overlap: int = field(default=0, init=False)
    _safeguard: Safeguard = field(default_factory=Safeguard, init=False)
    _issued: IssuedAnswers = field(default_factory=lambda: IssuedAnswers(_ISSUED_ROWS), init=False)
    _expert_memo: Memo[NDArray[np.float64]] = field(default_factory=Memo, init=False, compare=False)
    _memo: Memo[ValueForecast] = field(default_factory=Memo, init=False, compare=False)

    def __post_init__(self) -> None:
        """Add the experts that a loaded state lacks; they learn from the next value on."""
        missing = [name for name in expert_names() if name not in self._experts]
        if missing:
            self._admit(missing)
        self._last_value = self._place("nws")
        self._for_overlap = self._place(_FOR_OVERLAP)

    def update(self, time_seconds: float, value: float) -> None:
        self.learn(time_seconds, time_seconds, value)

    def learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        if _FOR_OVERLAP not in self._experts and not self._issued.is_current(time_seconds):
            self._admit([_FOR_OVERLAP])
        present = None
        if self._age.n > 1:
            present = self.all_forecasts(max(time_seconds, self._issued.used_until_seconds))
            if issued := self._answer_before(time_seconds):
                self._score(issued, value)
        self._issued.keep(present, time_seconds, known_at_seconds)
        self._expert_memo.clear()
        self._memo.clear()
        for expert in self._experts.data.values():
            expert.learn(time_seconds, known_at_seconds, value)

    def forecast(self, at_seconds: float) -> ValueForecast:
        cached = self._memo.get(at_seconds)
        if cached is not None:
            return cached
        self._age.require(1)
        return self._memo.keep(at_seconds, self._combined(self.all_forecasts(at_seconds), at_seconds))

    def start(self, prior: Prior) -> None:
        """Begin, before the first value, with the records of the experts on other series."""
        for aggregation, losses in (self._median, prior.absolute), (self._mean, prior.squared):
            aggregation.start(np.array([*chain(*(self._losses(name, losses) for name in self._experts))]))

    def losses(self) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """Return the mean losses by expert, absolute and squared, as in ``Prior``."""
        absolute, squared = self._median.mean_losses().tolist(), self._mean.mean_losses().tolist()
        ends = [*accumulate(expert.EXPERT_FORECASTS for expert in self._experts.values())]
        spans = {
            name: slice(end - self._experts[name].EXPERT_FORECASTS, end)
            for name, end in zip(self._experts, ends, strict=True)
        }
        return (
            {name: absolute[span] for name, span in spans.items()},
            {name: squared[span] for name, span in spans.items()},
        )

    def _admit(self, names: Iterable[str]) -> None:
        """Add the experts *names*, which learn from the next value on."""
        self._experts.update(_new(names))
        count = sum(expert.EXPERT_FORECASTS for expert in self._experts.values())
        self._median.widen(count)
        self._mean.widen(count)
        self._for_overlap = self._place(_FOR_OVERLAP)
        self._expert_memo.clear()

    def _place(self, name: str) -> int:
        """Return the index of the first forecast of the expert *name* among all forecasts."""
        earlier = takewhile(lambda each: each != name, self._experts)
        return sum(self._experts[each].EXPERT_FORECASTS for each in earlier)

    def _losses(self, name: str, losses: LossesByExpert) -> Sequence[float]:
        """Return the *losses* of the expert *name*: 1, the median, for an expert without a record."""
        count = self._experts[name].EXPERT_FORECASTS
        known = losses.get(name, ())
        return known if len(known) == count else [1.0] * count

    def forecast_before(self, at_seconds: float) -> tuple[ValueForecast, int] | None:
        """Return what the present weights make of the forecasts issued before *at_seconds*, and its overlap.

        None if the experts' forecasts of then are no longer known.
        """
        if self._issued.is_current(at_seconds):
            return self.forecast(at_seconds), 0
        if (issued := self._answer_before(at_seconds)) is None:
            return None
        return self._combined(issued.numbers, at_seconds), issued.overlap

    @property
    def fading_values(self) -> FadingValues | None:
        """The last values with fading weights; None while no run has overlapped another."""
        expert = self._experts.get(_FOR_OVERLAP)
        return expert.recent if isinstance(expert, fading_median.Method) else None

    def parts(self) -> Mapping[str, ForecastMethod]:
        """Return the experts, by name."""
        return self._experts.data

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

    def _score(self, issued: IssuedAnswer, value: float) -> None:
        """Learn how good the experts are, and the blend, from their forecasts of *value*."""
        forecasts, overlapping = issued.numbers, self._median.overlapping
        median = self._median.update(forecasts, value, issued.overlap)
        self._mean.update(forecasts, value, issued.overlap)
        unguarded = _moved(median, forecasts[self._for_overlap], overlapping) if overlapping else median
        self._safeguard.update(unguarded, float(forecasts[self._last_value]), value)

    def _combined(self, forecasts: NDArray[np.float64], at_seconds: float) -> ValueForecast:
        """Return what the present weights make of *forecasts*, those of all experts."""
        mean, median = self._mean.blend(forecasts), self._median.blend(forecasts)
        if overlapping := self._median.overlapping:
            for_median, for_mean = forecasts[self._for_overlap : self._for_overlap + 2]
            median, mean = _moved(median, for_median, overlapping), _moved(mean, for_mean, overlapping)
        median = self._safeguard.guarded(median, float(forecasts[self._last_value]))
        return self._age.forecast(mean, "blend", at_seconds, median=median)

    def _answer_before(self, at_seconds: float) -> IssuedAnswer | None:
        if self._issued.is_current(at_seconds):
            return IssuedAnswer(self.all_forecasts(at_seconds), 0)
        return self._issued.issued(at_seconds, sum(each.EXPERT_FORECASTS for each in self._experts.values()))


def _moved(blend: float, for_overlap: float, overlapping: float) -> float:
    """Return the *blend*, moved *for_overlap* by the share of runs that are *overlapping*.

    *for_overlap* is NaN if the forecasts were issued before the first overlap.
    """
    return blend if math.isnan(for_overlap) else blend + overlapping * (float(for_overlap) - blend)


def _forecasts_or_nan(expert: ForecastMethod, at_seconds: float) -> Sequence[float]:
    try:
        return expert.expert_forecasts(at_seconds)
    except Abstained:
        return (math.nan,) * expert.EXPERT_FORECASTS
