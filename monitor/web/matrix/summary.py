"""The head of every overview: outcomes of the last hour, series failing now, maintenance in progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.models import Run, Series
from monitor.models.run import ENDED, State
from monitor.runs.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES, outcome_label
from monitor.runs.maintenance.windows import ShownWindow
from monitor.web.status.incidents import CurrentIncidents
from monitor.web.status.latest import LETTERS
from monitor.web.status.series_details import LastRun, SeriesRuns, series_runs
from monitor.web.status.series_states import LAST_HOUR, OURS, SeriesStates

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FAILING = 8


@dataclass(frozen=True)
class FailingSeries:
    """A series whose last run did not pass.

    Attributes:
        site: the site where the run failed; None if the site is unknown or the monitor is at fault.
        is_ours: whether the monitor is at fault.
        consecutive: the number of runs that did not pass since the last passed run.
    """

    series: str
    site: str | None
    is_ours: bool
    last: LastRun
    consecutive: int

    @property
    def words(self) -> str:
        return outcome_label(self.last.state)


@dataclass(frozen=True)
class Summary:
    """The head of an overview.

    Attributes:
        incidents: the open incidents, and what changed.
        failing: the first ``MOST_FAILING`` series that fail and that no open incident affects.
        failing_count: the number of all series that fail.
        failing_alone_count: the number of all series that fail and that no open incident affects.
        maintenance: the maintenance in progress.
        outcomes: the number of runs of the last hour, by state.
        stale_count: the number of series whose last run is older than their schedule allows.
        current_count: the number of series whose last run passed or failed and is not stale.
    """

    incidents: CurrentIncidents
    failing: Sequence[FailingSeries]
    failing_count: int
    failing_alone_count: int
    maintenance: Sequence[ShownWindow]
    outcomes: Mapping[str, int]
    stale_count: int
    current_count: int

    @property
    def runs(self) -> int:
        return sum(self.outcomes.values())

    @property
    def failing_not_listed(self) -> int:
        return self.failing_alone_count - len(self.failing)

    @property
    def passed_share(self) -> float | None:
        """The share of passed runs among the executed runs; None if no run was executed."""
        executed = sum(self.outcomes.get(state, 0) for state in (State.PASSED, State.BROKEN, *GRID_FAILURES))
        return self.outcomes.get(State.PASSED, 0) / executed if executed else None


def outcomes_of_last_hour(states: SeriesStates, now: datetime) -> dict[str, int]:
    """Count the runs of the last hour by state.

    For each series its stored newest outcomes are counted. If a series may have had more runs than these,
    the runs in the ledger are counted instead.
    """
    is_full = states.recent[:, -1] != b" "
    partial = states.recent[~is_full] if is_full.any() else states.recent
    letters = np.zeros(256, np.int64)
    for column in partial.T:  # a row begins with its outcomes: nothing follows a column of spaces
        outcomes = column[column != b" "]
        if not len(outcomes):
            break
        letters += np.bincount(outcomes.view(np.uint8), minlength=256)
    counts = Counter({state: int(letters[ord(letter)]) for letter, state in LETTERS.items()})
    if is_full.any():
        runs = Run.objects.filter(
            series__in=states.series[is_full].tolist(),
            state__in=ENDED,
            slot__gt=now - LAST_HOUR,
            slot__lte=now,
        )
        counts.update(State(state) for state in runs.order_by().values_list("state", flat=True))
    return {str(state): count for state, count in sorted(counts.items()) if count}


def failing_series(
    states: SeriesStates,
    sites: Mapping[int, str],
    runs_by_series: Mapping[int, SeriesRuns],
    now: datetime,
    *,
    but: Collection[int] = (),
) -> list[FailingSeries]:
    """Return the first ``MOST_FAILING`` series that fail now, without those whose primary keys are *but*.

    Failures of the grid come first, sorted by site, then failures of the monitor. *sites* has names by
    primary key, sorted by name. *runs_by_series* has the runs of all series; if it is empty, the needed runs
    are read.
    """
    keys, culprits = _first_failing(states, list(sites), but)
    runs = runs_by_series or series_runs(Series.objects.filter(pk__in=keys).select_related("leader"), now)
    return [
        FailingSeries(
            series=runs[key].name,
            site=sites.get(culprit),
            is_ours=last.state in MONITOR_FAILURES,
            last=last,
            consecutive=consecutive_failures([state for state, _ in runs[key].trend]),
        )
        for key, culprit in zip(keys, culprits, strict=True)
        if key in runs and (last := runs[key].last) is not None  # deleted since
    ]


def is_any_of(series: NDArray[np.int64], keys: Collection[int]) -> NDArray[np.bool_]:
    """Return which of *series* are among the primary keys *keys*."""
    return np.isin(series, np.array(sorted(keys), dtype=np.int64))


def _first_failing(
    states: SeriesStates, sites: Sequence[int], but: Collection[int]
) -> tuple[list[int], list[int]]:
    """Return the keys of the first failing series, and of the site at which each series failed.

    *sites* has the primary keys of sites in the order in which their failures are listed.
    """
    failing: NDArray[np.int64] = np.flatnonzero(states.is_failing & ~is_any_of(states.series, but))
    rank = {key: number for number, key in enumerate(sites)}
    site = np.array([rank.get(key, len(rank)) for key in states.culprit[failing].tolist()], dtype=np.int64)
    is_ours = np.isin(states.state[failing], OURS)
    order = np.lexsort([states.series[failing], states.group[failing], site, is_ours])
    first = failing[order][:MOST_FAILING]
    return states.series[first].tolist(), states.culprit[first].tolist()


def consecutive_failures(states: Sequence[str]) -> int:
    """Count the newest runs that did not pass; skipped runs do not count. *states* are oldest first."""
    counted = [state for state in states if state != State.SKIPPED]
    failures = (*GRID_FAILURES, *MONITOR_FAILURES)
    return next((n for n, state in enumerate(reversed(counted)) if state not in failures), len(counted))


def maintenance_at(sites: Collection[str], maintenance: Sequence[ShownWindow]) -> str:
    """Return the notice of the first maintenance in progress at one of *sites*; empty if there is none."""
    return next((window.words for window in maintenance if window.covers(sites)), "")
