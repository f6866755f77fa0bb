"""The sum of the stages of a run, each forecast from the same stage of a probe.

A total need not include every stage: the total of the core leaves out setup and cleanup. So the method learns
which stages a total includes: the method includes or excludes a stage if that makes the unexplained rest of
the totals clearly smaller. The forecast of the rest is its median.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from forecasting import predictor_values
from forecasting.base import DataAge, ForecastMethod, Source, ValueForecast
from forecasting.learning.scale import TypicalSize
from forecasting.learning.windows import SortedWindow, median_of_sorted
from forecasting.methods import lrp_robust

_WINDOW = 31
_MIN_RUNS = 3  # runs between two changes of the included stages
_MAX_LEFT = 0.9  # share of the unexplained rest that may remain after a stage is included or excluded


class StageEstimate(NamedTuple):
    """The forecast of one stage; *predictor* is None if only the stage's own history was used."""

    seconds: float
    predictor: Source | None


def _window() -> SortedWindow:
    return SortedWindow(_WINDOW)


@dataclass(slots=True)
class StageHistory:
    """One stage: its durations, and their regression on probes."""

    is_included: bool = field(default=True, init=False)
    # the unexplained rest if this stage were included (or excluded, if it is included now)
    unexplained: TypicalSize = field(default_factory=TypicalSize, init=False)
    newest_seconds: float = field(default=0.0, init=False)
    newest: float = field(default=0.0, init=False)
    own: SortedWindow = field(default_factory=_window, init=False)
    line: lrp_robust.Method = field(default_factory=lrp_robust.Method, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        """Learn *value*, the duration of the stage in the next run."""
        self.newest_seconds, self.newest = time_seconds, value
        self.own.add(value)
        self.line.update(time_seconds, value)

    def forecast(self, at_seconds: float) -> StageEstimate:
        """Forecast the duration in a run at *at_seconds*; at least one duration must be known."""
        seconds = self.line.forecast_from_predictor(at_seconds)
        if seconds is None:
            return StageEstimate(median_of_sorted(self.own.ordered, len(self.own)), None)
        return StageEstimate(seconds, self.line.predictor(at_seconds))


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the sum of the stages, each by the robust line (``lrp_robust``) on the same stage of probes.

    A stage is a metric ``stage.<name>.seconds``. A source with the series "" is a stage of the own run.
    Without stages the forecast is the median of the last 31 values.
    """

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False
    USES_PREDICTORS: ClassVar[bool] = True
    USES_STAGES: ClassVar[bool] = True

    _age: DataAge = field(default_factory=DataAge, init=False)
    _stages: dict[str, StageHistory] = field(default_factory=dict, init=False)
    _rest: SortedWindow = field(default_factory=_window, init=False)
    _unexplained: TypicalSize = field(default_factory=TypicalSize, init=False)
    _runs: int = field(default=0, init=False)  # since a stage was included or excluded

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        predictor_values.require_usable(time_seconds, known_at_seconds, value)
        if not (source.metric.startswith("stage.") and source.metric.endswith(".seconds")):
            return
        stage = self._stages.setdefault(source.metric, StageHistory())
        if source.series:
            stage.line.observe_predictor(source, time_seconds, known_at_seconds, value)
        else:
            stage.update(time_seconds, float(value))

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        stages = [stage for stage in self._own_stages().values() if stage.newest_seconds == time_seconds]
        rest = float(value) - sum(stage.newest for stage in stages if stage.is_included)
        self._unexplained.add(rest)
        for stage in stages:
            stage.unexplained.add(rest + stage.newest if stage.is_included else rest - stage.newest)
        self._rest.add(rest)
        self._runs += 1
        if stages and self._runs >= _MIN_RUNS:
            self._revise(stages)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        total = sum(stage.seconds for stage in self.stages(at_seconds).values())
        rest = median_of_sorted(self._rest.ordered, len(self._rest)) if len(self._rest) else 0.0
        return self._age.forecast(total + rest, "stagewise", at_seconds)

    def stages(self, at_seconds: float) -> Mapping[str, StageEstimate]:
        """Return the forecast of each included stage in a run at *at_seconds*."""
        stages = self._own_stages().items()
        return {name: stage.forecast(at_seconds) for name, stage in stages if stage.is_included}

    def _own_stages(self) -> dict[str, StageHistory]:
        return {name: stage for name, stage in self._stages.items() if len(stage.own)}

    def _revise(self, stages: list[StageHistory]) -> None:
        """Include or exclude the stage whose change explains the totals best, if the improvement is clear."""
        best = min(stages, key=lambda stage: stage.unexplained.size)
        if best.unexplained.size >= _MAX_LEFT * self._unexplained.size:
            return
        best.is_included = not best.is_included
        self._runs, self._unexplained, self._rest = 0, TypicalSize(), _window()
        for stage in self._stages.values():
            stage.unexplained = TypicalSize()
