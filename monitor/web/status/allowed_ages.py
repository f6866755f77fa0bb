"""How old the newest results of many series may be, from columns of the table of series."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from monitor.core.db import binary
from monitor.depot.series.staleness import UNSCHEDULED, allowed_age_seconds
from monitor.models import Series
from monitor.models.series import IMPORTED
from monitor.web.status import latest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

NEVER_CURRENT = -math.inf  # the allowed age of imported history
_OF_IMPORTED, _NOTHING_DUE = -2, -1  # instead of the slack of the series
_SLACK = (
    f"CASE WHEN starts_with(probe, '{IMPORTED}') THEN {_OF_IMPORTED} WHEN enabled"
    f" THEN ceil(limit_seconds)::bigint + jitter_seconds + delay_seconds ELSE {_NOTHING_DUE} END"
)
_TIMING = f"hashtextextended(schedule, hashtextextended(timezone, {_SLACK}))"
_TIMINGS = (
    f"SELECT DISTINCT {_TIMING}, schedule, timezone, {_SLACK} FROM monitor_series WHERE {_TIMING} = ANY(%b)"  # noqa: S608
)
# What ``allowed_ages`` needs: read it along with other columns. One number per series takes half of the time
# of two; series have few different timings.
COLUMNS = {"timing": ("integer", _TIMING)}
_MOST_KEPT = 10_000


class _Timing(NamedTuple):
    """The allowed age of a schedule without slack, and the slack, both in seconds."""

    gap: float
    slack: float


_UNKNOWN = _Timing(UNSCHEDULED, 0.0)  # of a series that was changed between two statements: not stale yet
_timings: dict[int, _Timing] = {}  # by hash: pure functions of what is hashed, so they never become invalid


def allowed_ages(rows: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return ``monitor.depot.series.staleness.allowed_age`` of each series of *rows*, in seconds.

    *rows* has the columns ``series`` and ``COLUMNS``. A leader that is not in *rows* counts as disabled.
    That of imported series is ``NEVER_CURRENT``.
    """
    if not len(rows["series"]):
        return np.zeros(0)
    hashes, position = np.unique(rows["timing"], return_inverse=True)
    by_hash = np.array(_timings_of(hashes.tolist()), dtype=np.float64).reshape(-1, 2)
    gaps, slack = by_hash[position].T
    is_due = slack >= 0
    pairs = Series.objects.exclude(leader=None).order_by().values_list("pk", "leader")
    of_leaders = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    follower, leader = (latest.positions_of(keys, rows["series"]) for keys in of_leaders.T)
    is_shown = follower >= 0
    follower, leader = follower[is_shown], leader[is_shown]
    gaps[follower] = latest.take(gaps, leader, UNSCHEDULED)
    is_due[follower] &= latest.take(is_due, leader, default=False)
    return np.where(is_due, gaps + slack, np.where(slack == _OF_IMPORTED, NEVER_CURRENT, UNSCHEDULED))


def _timings_of(hashes: Collection[int]) -> list[_Timing]:
    unknown = [each for each in hashes if each not in _timings]
    if unknown:
        if len(_timings) + len(unknown) > _MOST_KEPT:
            _timings.clear()
            unknown = list(hashes)
        with binary.cursor() as cursor:
            found = cursor.execute(_TIMINGS.encode(), [unknown], prepare=False).fetchall()
        for number, schedule, zone, slack in found:
            _timings[number] = _Timing(allowed_age_seconds(schedule, zone, limit_seconds=0), slack)
    return [_timings.get(each, _UNKNOWN) for each in hashes]
