"""States of series: how runs ended, the probability that the next run passes, the time until one passes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, NamedTuple

import numpy as np

from forecasting import state
from forecasting.base import LARGEST_VALUE, OutdatedState
from forecasting.uncertainty import retries
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from forecasting.uncertainty.success import PathOutcome, SuccessChance, SuccessForecaster
from monitor.analysis.forecasts import states
from monitor.analysis.forecasts.defaults import HEADLINE
from monitor.analysis.forecasts.input_digest import Input
from monitor.analysis.forecasts.inputs_sql import RUN_ENDS
from monitor.analysis.forecasts.statements import execute_each, fetch
from monitor.analysis.forecasts.update import StateUpdate
from monitor.core.compression import pack_state
from monitor.models import SuccessState

MOST_FAILURES = 50  # whose durations are remembered
_SECOND = 1_000_000  # microseconds

_TOTALS = """
SELECT current.series_id AS series, total.mean, total.quantiles FROM monitor_currentsegment AS current
JOIN monitor_metric AS metric ON metric.segment_id = current.segment_id AND metric.name = %(name)b
JOIN monitor_forecaststate AS state ON state.metric_id = metric.id
JOIN monitor_forecast AS total ON total.id = state.forecast_id
WHERE current.series_id = ANY (%(series)b::bigint[])
"""
# Times stay while there is no forecast of the total.
_WRITE = """
UPDATE monitor_successstate
SET probability = %(success_probability)b,
    expected_seconds = coalesce(%(success_seconds)b::float8, expected_seconds),
    quantiles = coalesce(%(success_quantiles)b::float8[], quantiles)
WHERE series_id = %(series)b
"""


class TotalEstimate(NamedTuple):
    """The forecast duration of the next run of *series*, provided that the run passes."""

    series: int
    mean: float
    quantiles: Sequence[float]


@dataclass(slots=True)
class SuccessHistory:
    """The ends of the runs of a series; *failures* are the durations in seconds of the newest failed runs."""

    VERSION: ClassVar[int] = 1
    forecaster: SuccessForecaster = field(default_factory=SuccessForecaster)
    failures: deque[float] = field(default_factory=deque)

    def learn(self, ends: Sequence[Input]) -> None:
        """Use *ends*, in the order in which they became known."""
        for end in ends:
            has_passed = end.value >= 0.0
            self.forecaster.observe(
                PathOutcome(end.time / _SECOND, end.known_at / _SECOND, has_passed, end.ended_at / _SECOND)
            )
            if not has_passed:
                self.failures.append(-1.0 - end.value)
        while len(self.failures) > MOST_FAILURES:
            self.failures.popleft()
        self.forecaster.learn_until(ends[-1].known_at / _SECOND)

    def chance(self, at: datetime | None = None) -> SuccessChance | None:
        """Return the chances of a run that starts at *at*; None if no end of a run is known.

        By default *at* is the last used end of a run.
        """
        if not self.forecaster.n:
            return None
        latest = self.forecaster.used_until_seconds
        return self.forecaster.forecast(latest if at is None else max(at.timestamp(), latest))


@dataclass(frozen=True, kw_only=True)
class SuccessEstimate:
    """The probability that a run passes, and the time until a run has passed.

    The time assumes that a run that fails is repeated at once.

    Attributes:
        success_n: the number of ends of runs that were used.
        success_probability: the probability that the run passes.
        success_seconds: the mean of the time, in seconds; None if the duration of runs is unknown.
        success_quantiles: the quantiles of the time at ``QUANTILE_LEVELS``; None if the duration is unknown.

    If no end of a run is known, all fields are None.
    """

    success_n: int | None = None
    success_probability: float | None = None
    success_seconds: float | None = None
    success_quantiles: Sequence[float] | None = None


class SuccessUpdate(StateUpdate):
    """The update of the state of a series."""

    model = SuccessState
    relation = RUN_ENDS

    def __init__(self, series: int, hours: Iterable[datetime] = ()) -> None:
        super().__init__(series, series, hours)
        self.history = SuccessHistory()

    def __str__(self) -> str:
        return f"how runs of series {self.key} end"

    @classmethod
    def read_sources(cls, updates: Iterable[SuccessUpdate]) -> None:
        """Do nothing: the only source is the series itself."""

    def learn(self, inputs: Sequence[Input]) -> None:
        if self.row.state is not None:
            self.history = states.load(SuccessHistory, self.row.state)
        if inputs:
            self.history.learn(inputs)

    def answer(self, now: datetime) -> None:
        """Do nothing: ``publish`` computes all answers at once."""

    def pack(self) -> None:
        self.row.state = pack_state(state.dump(self.history))
        self.row.versions = state.versions(SuccessHistory)
        self.row.n = self.history.forecaster.n

    @classmethod
    def publish(cls, updates: Sequence[SuccessUpdate], now: datetime) -> None:
        del now  # the estimates are as of the last end
        _write({update.key: update.history for update in updates})


def update_times(series: Collection[int]) -> None:
    """Update the time until a run has passed, for *series* whose forecast of the total has changed.

    Part of the caller's transaction.
    """
    rows = states.lock(SuccessState, series).values()
    _write(_histories((row.key, row.state) for row in rows if not row.is_behind))


def estimates(
    series: Collection[int], at: datetime, totals: Mapping[int, TotalEstimate] | None = None
) -> dict[int, SuccessEstimate]:
    """Return estimates for runs that start at *at*, by series; omit series with unread inputs.

    *totals* has the forecast duration, by series, of a run that passes; by default the current forecast of
    the next run.
    """
    complete = SuccessState.objects.filter(pk__in=series, is_behind=False)
    return _estimates(_histories(complete.values_list("pk", "state")), at, totals)


def _histories(packed: Iterable[tuple[int, bytes | memoryview | None]]) -> dict[int, SuccessHistory]:
    """Return the histories by series, from pairs of (key, packed state); outdated states are left out."""
    histories = {}
    for key, packed_state in packed:
        if packed_state is not None:
            with contextlib.suppress(OutdatedState):  # it is soon reset
                histories[key] = states.load(SuccessHistory, packed_state)
    return histories


def _write(histories: Mapping[int, SuccessHistory]) -> None:
    """Write the estimates for the next run of each series, as of the last used end of a run."""
    found = _estimates(histories)
    execute_each(_WRITE, [{"series": key, **vars(found.get(key, SuccessEstimate()))} for key in histories])


def _estimates(
    histories: Mapping[int, SuccessHistory],
    at: datetime | None = None,
    totals: Mapping[int, TotalEstimate] | None = None,
) -> dict[int, SuccessEstimate]:
    chances = {key: chance for key, history in histories.items() if (chance := history.chance(at))}
    if totals is None:
        parameters = {"series": list(chances), "name": HEADLINE}
        totals = {total.series: total for total in fetch(TotalEstimate, _TOTALS, parameters)}
    found = {
        key: SuccessEstimate(success_n=chance.n, success_probability=chance.first)
        for key, chance in chances.items()
    }
    timed = [key for key in chances if key in totals]
    if not timed:
        return found
    first, later = [chances[key].first for key in timed], [chances[key].later for key in timed]
    success = np.array([totals[key].quantiles for key in timed]).clip(0.0, LARGEST_VALUE)
    means = np.array([totals[key].mean for key in timed]).clip(0.0, LARGEST_VALUE)
    failure = np.array(
        [_failure_quantiles(histories[key], passing) for key, passing in zip(timed, success, strict=True)]
    )
    seconds = retries.mean_seconds(first, later, means, failure.mean(axis=1)).clip(max=LARGEST_VALUE).tolist()
    quantiles = retries.quantiles_seconds(QUANTILE_LEVELS, first, later, QUANTILE_LEVELS, success, failure)
    columns = quantiles.clip(max=LARGEST_VALUE).T.tolist()
    for key, expected_seconds, column in zip(timed, seconds, columns, strict=True):
        found[key] = replace(found[key], success_seconds=expected_seconds, success_quantiles=column)
    return found


def _failure_quantiles(history: SuccessHistory, success: Sequence[float]) -> Sequence[float]:
    """Return the quantiles of the duration of a failing run in seconds; *success* if no run has failed."""
    failures = sorted(history.failures)
    return np.quantile(failures, QUANTILE_LEVELS).tolist() if failures else success
