"""How likely runs of series pass, and how long it takes until one has: from what is known of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from forecasting import state
from forecasting.base import LARGEST_VALUE, OutdatedState
from forecasting.uncertainty import retries
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from forecasting.uncertainty.success import RunOutcome, SuccessChance, SuccessForecaster
from monitor.compression import unpack_state
from monitor.forecasts import success_sql
from monitor.forecasts.score import HEADLINE

if TYPE_CHECKING:
    from monitor.forecasts.state_update import Input
    from monitor.forecasts.success_sql import Total

FAILURES = 50  # the newest, of which it is known how long they took
_SECOND = 1_000_000


@dataclass(slots=True)
class Course:
    """What is known of a series: how its runs ended, and how many seconds the newest failures took."""

    VERSION: ClassVar[int] = 1
    forecaster: SuccessForecaster = field(default_factory=SuccessForecaster)
    failures: deque[float] = field(default_factory=deque)

    def learn(self, ends: Iterable[Input]) -> None:
        known = sorted(ends, key=lambda one: (one.known_at, one.time, one.value))
        for one in known:
            passed = one.value >= 0.0
            self.forecaster.observe(RunOutcome(one.time / _SECOND, one.known_at / _SECOND, passed))
            if not passed:
                self.failures.append(-1.0 - one.value)
        while len(self.failures) > FAILURES:
            self.failures.popleft()
        if known:
            self.forecaster.learn_until(known[-1].known_at / _SECOND)

    def chance(self, at: datetime | None = None) -> SuccessChance | None:
        """Of a run that starts *at* some time; None: as of its latest news, so that the same is said whenever
        that is used. None if nothing is known."""
        if not self.forecaster.n:
            return None
        latest = self.forecaster.used_until_seconds
        return self.forecaster.forecast(latest if at is None else max(at.timestamp(), latest))


@dataclass(frozen=True)
class Known:
    """A series, what is known of it, and what is said of a run of it."""

    series: int
    course: Course
    chance: SuccessChance


@dataclass(frozen=True)
class Success:
    """How likely a run passes, from *n* runs; and how long it takes until one has, begun anew after each that
    does not (None where it is not known how long they take). *quantiles* are of the grid."""

    n: int
    probability: float
    expected_seconds: float | None = None
    quantiles: Sequence[float] | None = None


def successes(
    series: Collection[int], at: datetime, totals: Mapping[int, Total] | None = None
) -> dict[int, Success]:
    """Of runs that start *at* some time, of those of *series* whose ends have all been used. How long one
    takes that passes is what *totals* say, or what is ready of the next run."""
    known = []
    for key, kept in success_sql.states(series):
        try:
            course = loaded(kept)
        except OutdatedState:
            continue  # what is ready of it stays until it is read anew
        if chance := course.chance(at):
            known.append(Known(key, course, chance))
    if totals is None:
        totals = {
            total.series: total for total in success_sql.totals([one.series for one in known], HEADLINE)
        }
    return expected(known, totals)


def loaded(kept: bytes | None) -> Course:
    """What is kept.

    Raises:
        forecasting.base.OutdatedState: it was kept by other methods than today's.
    """
    if kept is None:
        return Course()
    try:
        return state.load(Course, unpack_state(kept))
    except ValueError as error:
        raise OutdatedState(str(error)) from error


def expected(known: Collection[Known], totals: Mapping[int, Total]) -> dict[int, Success]:
    """By series: how likely each passes, and how long it takes until a run of it has passed, where it is
    known what its total is expected to be."""
    found = {one.series: Success(one.chance.n, one.chance.first) for one in known}
    those = [one for one in known if one.series in totals]
    if those:
        found |= _with_times(those, [totals[one.series] for one in those])
    return found


def _with_times(known: Sequence[Known], totals: Sequence[Total]) -> dict[int, Success]:
    first, later = [one.chance.first for one in known], [one.chance.later for one in known]
    success = np.array([total.quantiles for total in totals]).clip(0.0, LARGEST_VALUE)
    failure = np.array(
        [_failure_quantiles(one.course, quantiles) for one, quantiles in zip(known, success, strict=True)]
    )
    means = np.array([total.mean for total in totals]).clip(0.0, LARGEST_VALUE)
    seconds = retries.mean_seconds(first, later, means, failure.mean(axis=1)).clip(max=LARGEST_VALUE).tolist()
    quantiles = retries.quantiles_seconds(
        QUANTILE_LEVELS, first, later, QUANTILE_LEVELS, success, failure
    ).clip(max=LARGEST_VALUE)
    return {
        one.series: Success(one.chance.n, one.chance.first, seconds[place], quantiles[:, place].tolist())
        for place, one in enumerate(known)
    }


def _failure_quantiles(course: Course, success: Sequence[float]) -> Sequence[float]:
    """How long a run takes that fails; while none has, as long as one that passes."""
    failures = sorted(course.failures)
    return np.quantile(failures, QUANTILE_LEVELS).tolist() if failures else success
