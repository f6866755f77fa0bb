"""Stage by stage: each stage of a run is predicted from the same stage of a probe, and all are added up.

A total need not be made of every stage: one that counts only the core leaves out what comes before and after.
So it is learned which stages are in it: a stage is taken in or left out when what remains unexplained of the
totals would be less for it. The rest that no stage explains is expected to be its median.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from forecasting import heard_values
from forecasting.base import DataAge, ForecastMethod, Source, ValueForecast
from forecasting.learning.scale import Typical
from forecasting.learning.windows import SortedWindow, middle
from forecasting.methods import lrp_robust

_REMEMBERED = 31
_LEAST_RUNS = 3  # before it is judged whether a stage belongs to the total
_CLEARLY = 0.9  # of what is unexplained may be left where a stage changes sides


class Expected(NamedTuple):
    """What one stage will take, and the *predictor* that says so; None: its own history."""

    seconds: float
    predictor: Source | None


def _window() -> SortedWindow:
    return SortedWindow(_REMEMBERED)


@dataclass(slots=True)
class Stage:
    """One stage: what it took, and what probes say of it."""

    counted: bool = field(default=True, init=False)
    # if it were counted where it is not, or not
    unexplained: Typical = field(default_factory=Typical, init=False)
    newest_seconds: float = field(default=0.0, init=False)
    newest: float = field(default=0.0, init=False)
    own: SortedWindow = field(default_factory=_window, init=False)
    line: lrp_robust.Method = field(default_factory=lrp_robust.Method, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        """Learn what it took in the next run."""
        self.newest_seconds, self.newest = time_seconds, value
        self.own.add(value)
        self.line.update(time_seconds, value)

    def expected(self, at_seconds: float) -> Expected:
        """What it will take in a run at *at_seconds*; it was part of a run before."""
        said = self.line.from_predictors(at_seconds)
        if said is None:
            return Expected(middle(self.own.ordered, len(self.own)), None)
        return Expected(said, self.line.predictor(at_seconds))


@dataclass(slots=True)
class Method(ForecastMethod):
    """The sum of the stages, from the robust line (``lrp_robust``) of each with those of probes.

    A stage is a metric ``stage.<name>.seconds``; of the own run where the source's series is "". Without
    stages the forecast is the median of the last 31 values.
    """

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    USES_PREDICTORS: ClassVar[bool] = True
    USES_STAGES: ClassVar[bool] = True

    _age: DataAge = field(default_factory=DataAge, init=False)
    _stages: dict[str, Stage] = field(default_factory=dict, init=False)
    _rest: SortedWindow = field(default_factory=_window, init=False)
    _unexplained: Typical = field(default_factory=Typical, init=False)
    _judged: int = field(default=0, init=False)  # runs since a stage changed sides

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        heard_values.require_usable(time_seconds, known_at_seconds, value)
        if not (source.metric.startswith("stage.") and source.metric.endswith(".seconds")):
            return
        stage = self._stages.setdefault(source.metric, Stage())
        if source.series:
            stage.line.observe_predictor(source, time_seconds, known_at_seconds, value)
        else:
            stage.update(time_seconds, float(value))

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        passed = [one for one in self._own_stages().values() if one.newest_seconds == time_seconds]
        rest = float(value) - sum(one.newest for one in passed if one.counted)
        self._unexplained.add(rest)
        for one in passed:
            one.unexplained.add(rest + one.newest if one.counted else rest - one.newest)
        self._rest.add(rest)
        self._judged += 1
        if passed and self._judged >= _LEAST_RUNS:
            self._judge(passed)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        total = sum(one.seconds for one in self.stages(at_seconds).values())
        rest = middle(self._rest.ordered, len(self._rest)) if len(self._rest) else 0.0
        return self._age.forecast(total + rest, "stagewise", at_seconds)

    def stages(self, at_seconds: float) -> Mapping[str, Expected]:
        """What each stage that is part of the total is expected to take in a run at *at_seconds*."""
        return {name: one.expected(at_seconds) for name, one in self._own_stages().items() if one.counted}

    def _own_stages(self) -> dict[str, Stage]:
        return {name: one for name, one in self._stages.items() if len(one.own)}

    def _judge(self, passed: list[Stage]) -> None:
        """Let the stage change sides that explains the totals best there, if it clearly does."""
        best = min(passed, key=lambda one: one.unexplained.size)
        if best.unexplained.size >= _CLEARLY * self._unexplained.size:
            return
        best.counted = not best.counted
        self._judged, self._unexplained, self._rest = 0, Typical(), _window()
        for one in self._stages.values():
            one.unexplained = Typical()
