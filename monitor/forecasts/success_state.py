"""States of series: how their runs ended, how likely the next one passes, and when one will have passed."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from forecasting import state
from forecasting.base import LARGEST_VALUE, OutdatedState
from forecasting.series import OWN_SERIES
from forecasting.uncertainty import retries
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from forecasting.uncertainty.success import PathOutcome, SuccessChance, SuccessForecaster
from monitor.compression import pack_state, unpack_state
from monitor.forecasts import success_sql
from monitor.forecasts.input_digest import Input
from monitor.forecasts.inputs_sql import RUN_ENDS
from monitor.forecasts.state_table import SUCCESS_STATES, StoredState
from monitor.forecasts.success_sql import TotalEstimate
from monitor.forecasts.update import StateUpdate

MOST_FAILURES = 50  # whose durations are remembered
_SECOND = 1_000_000  # microseconds


@dataclass(slots=True)
class SuccessHistory:
    """What is known of how the runs of a series end; *failures* are seconds that the newest ones took."""

    VERSION: ClassVar[int] = 1
    forecaster: SuccessForecaster = field(default_factory=SuccessForecaster)
    failures: deque[float] = field(default_factory=deque)

    def learn(self, ends: Sequence[Input]) -> None:
        """Use *ends*, in the order in which they became known."""
        for end in ends:
            has_passed = end.value >= 0.0
            self.forecaster.observe(PathOutcome(end.time / _SECOND, end.known_at / _SECOND, has_passed))
            if not has_passed:
                self.failures.append(-1.0 - end.value)
        while len(self.failures) > MOST_FAILURES:
            self.failures.popleft()
        self.forecaster.learn_until(ends[-1].known_at / _SECOND)

    def chance(self, at: datetime | None = None) -> SuccessChance | None:
        """Return the chances of a run that starts *at* that time; None: as of the last end that was used.

        None if no end is known.
        """
        if not self.forecaster.n:
            return None
        latest = self.forecaster.used_until_seconds
        return self.forecaster.forecast(latest if at is None else max(at.timestamp(), latest))


@dataclass(frozen=True)
class SuccessEstimate:
    """The *probability*, from *n* ends, that a run passes, and the time until one has passed.

    A run that fails is repeated at once. *quantiles* of that time are of ``QUANTILE_LEVELS``; None where it
    is not known how long runs take.
    """

    n: int
    probability: float
    expected_seconds: float | None = None
    quantiles: Sequence[float] | None = None


class SuccessUpdate(StateUpdate):
    """The state of one series."""

    table = SUCCESS_STATES
    relation = RUN_ENDS

    def __init__(self, series: int, hours: Iterable[datetime] = ()) -> None:
        super().__init__(series, series, {series: OWN_SERIES}, set(hours))
        self.history = SuccessHistory()

    def __str__(self) -> str:
        return f"how runs of series {self.key} end"

    @classmethod
    def read_sources(cls, updates: Iterable[SuccessUpdate]) -> None:
        """Do nothing: the only source is the series itself."""

    def load(self, stored: StoredState | None) -> None:
        if stored is not None:
            self.history = load_history(stored.state)

    def learn(self, inputs: Sequence[Input]) -> None:
        self.history.learn(inputs)

    def answer(self, now: datetime) -> None:
        """Do nothing: ``publish`` computes all answers at once."""

    def row(self) -> dict[str, Any]:
        return {
            "series_id": self.key,
            "state": pack_state(state.dump(self.history)),
            "versions": state.versions(SuccessHistory),
            "n": self.history.forecaster.n,
        }

    @classmethod
    def publish(cls, updates: Sequence[SuccessUpdate], now: datetime) -> None:
        del now  # the estimates are as of the last end
        _write({update.key: update.history for update in updates})


def load_history(packed: bytes) -> SuccessHistory:
    """Return the history of a packed state.

    Raises:
        forecasting.base.OutdatedState: other methods than today's made it.
    """
    try:
        return state.load(SuccessHistory, unpack_state(packed))
    except ValueError as error:
        raise OutdatedState(str(error)) from error


def update_times(series: Collection[int]) -> None:
    """Update how long it takes until a run of each has passed: the forecast of its total changed.

    Part of the caller's transaction.
    """
    SUCCESS_STATES.lock(series)
    _write(_complete(series))


def estimates(
    series: Collection[int], at: datetime, totals: Mapping[int, TotalEstimate] | None = None
) -> dict[int, SuccessEstimate]:
    """Return estimates for runs that start *at* that time, of those of *series* whose states are complete.

    How long a run takes that passes is given by *totals*, or by the current forecast of the next run.
    """
    return _estimates(_complete(series), at, totals)


def _complete(series: Collection[int]) -> dict[int, SuccessHistory]:
    """Return the complete histories of *series*, without outdated ones, which are soon reset."""
    histories = {}
    for key, stored in SUCCESS_STATES.stored(series, is_complete=True).items():
        try:
            histories[key] = load_history(stored.state)
        except OutdatedState:
            continue
    return histories


def _write(histories: Mapping[int, SuccessHistory]) -> None:
    """Write estimates for the next runs, as of the last end: the same whenever that is used."""
    found = _estimates(histories)
    success_sql.write(
        {
            "series": key,
            "probability": estimate and estimate.probability,
            "expected_seconds": estimate and estimate.expected_seconds,
            "quantiles": estimate and estimate.quantiles,
        }
        for key, estimate in ((key, found.get(key)) for key in histories)
    )


def _estimates(
    histories: Mapping[int, SuccessHistory],
    at: datetime | None = None,
    totals: Mapping[int, TotalEstimate] | None = None,
) -> dict[int, SuccessEstimate]:
    chances = {key: chance for key, history in histories.items() if (chance := history.chance(at))}
    if totals is None:
        totals = {total.series: total for total in success_sql.totals(chances)}
    found = {key: SuccessEstimate(chance.n, chance.first) for key, chance in chances.items()}
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
        chance = chances[key]
        found[key] = SuccessEstimate(chance.n, chance.first, expected_seconds, column)
    return found


def _failure_quantiles(history: SuccessHistory, success: Sequence[float]) -> Sequence[float]:
    """Return how long a run takes that fails; while none has failed, as long as one that passes."""
    failures = sorted(history.failures)
    return np.quantile(failures, QUANTILE_LEVELS).tolist() if failures else success
