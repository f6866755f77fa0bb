"""The states of all series of an overview: a few numbers per series, in arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import micros
from monitor.runs.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES
from monitor.web.status import latest
from monitor.web.status.column_arrays import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models.series import SeriesQuerySet

LAST_HOUR = timedelta(hours=1)
OURS = [state[0].encode() for state in MONITOR_FAILURES]
BY_GRID = [state[0].encode() for state in GRID_FAILURES]

# The standings of a series at a site, the worst last; a standing is an index into counts.
# A stale result says nothing about the present, whatever it was.
UNKNOWN, SKIPPED, PASSED, STALE, ELSEWHERE, MONITORING, SOMEWHERE, HERE = STANDINGS = range(8)
CURRENT = (PASSED, ELSEWHERE, MONITORING, SOMEWHERE, HERE)  # the newest result tells of the present

_BLAMED = "LEFT JOIN monitor_resource AS blamed ON blamed.name = failed_resource"


@dataclass(frozen=True)
class SeriesStates:
    """The states of series: one row per series; all arrays are in the same order.

    Attributes:
        group: the index of the column of the series.
        state: the first letter of the state of the last run that was not skipped; if every slot was skipped,
            the letter of that state.
        ended_at: when the last run ended, in microseconds since 1970.
        culprit: the primary key of the site where the last run failed; 0 if the site is unknown.
        recent: the outcomes of the last hour, at most 20 letters, padded with spaces.
        is_imported: whether the runs are imported history, which fails at no time now.
    """

    series: NDArray[np.int64]
    group: NDArray[np.int64]
    state: NDArray[np.bytes_]
    ended_at: NDArray[np.int64]
    culprit: NDArray[np.int64]
    recent: NDArray[np.bytes_]
    is_imported: NDArray[np.bool_]

    @cached_property
    def is_failing(self) -> NDArray[np.bool_]:
        return np.isin(self.state, [*OURS, *BY_GRID]) & ~self.is_imported

    def failing(self) -> SeriesStates:
        """Return the rows of the series that fail."""
        is_failing = self.is_failing
        return SeriesStates(*(getattr(self, each.name)[is_failing] for each in fields(self)))

    def joined(self, other: SeriesStates) -> SeriesStates:
        """Return these rows, then those of *other*."""
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return SeriesStates(*(np.concatenate(pair) for pair in pairs))


def series_states(
    source: SeriesQuerySet,
    series: NDArray[np.int64],
    group: NDArray[np.int64],
    now: datetime,
    *,
    is_imported: NDArray[np.bool_],
) -> SeriesStates:
    """Return the states of *series* (primary keys).

    *source* is a queryset that contains all of *series*; *group* has the index of the column of each series.
    """
    columns = {
        "state": ("letter", latest.STATE_OR_SKIPPED),
        "ended_at": ("time", "coalesce(ended_at, slot, '-infinity')"),
        "culprit": ("integer", "coalesce(blamed.site_id, 0)"),
        "recent": ("outcomes", _outcomes_between(now - LAST_HOUR, now)),
    }
    rows = latest.latest_columns(source, series, columns, _BLAMED)
    return SeriesStates(series, group, **rows, is_imported=is_imported)


def stale_rows(
    states: SeriesStates, allowed_age_seconds: NDArray[np.float64] | None, now: datetime
) -> NDArray[np.bool_]:
    """Return which of *states* are older than allowed; none, if the allowed ages are not known.

    Of a series of which every slot was skipped, nothing is stale; imported history is.
    """
    if allowed_age_seconds is None:
        return np.zeros(len(states.series), dtype=bool)
    is_executed = (states.state != b" ") & (states.state != b"s") & (states.ended_at != NEVER)
    age_seconds = (micros(now) - states.ended_at) / 1e6
    stale: NDArray[np.bool_] = is_executed & (age_seconds > allowed_age_seconds)
    return stale


def standings(
    state: NDArray[np.bytes_], culprit: NDArray[np.int64], site: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the standing of each row as seen from *site*: ``ledger.attribution.fault`` on arrays."""
    failed = np.where(culprit == 0, SOMEWHERE, np.where(culprit == site, HERE, ELSEWHERE))
    return np.select(
        [state == b"p", np.isin(state, BY_GRID), np.isin(state, OURS), state == b"s"],
        [PASSED, failed, MONITORING, SKIPPED],
        UNKNOWN,
    )


def _outcomes_between(start: datetime, end: datetime) -> str:
    """Return SQL for the newest outcomes whose slot lies in (start, end]."""
    first, last = (f"width_bucket('{time.isoformat()}'::timestamptz, slots)" for time in (start, end))
    is_past = f"slots[cardinality(slots)] <= '{end.isoformat()}'"  # of nearly all rows
    newest = f"substr(outcomes, {first} + 1)"
    return f"CASE WHEN {is_past} THEN {newest} ELSE substr(outcomes, {first} + 1, {last} - {first}) END"
