"""How old the newest results of many series may be, from columns of the table of series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.db import binary
from monitor.models import Series
from monitor.models.series import IMPORTED
from monitor.overview import latest
from monitor.series.staleness import UNSCHEDULED, allowed_age_seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

_TEXT = r"timezone || E'\n' || schedule"
_HASH = f"hashtextextended({_TEXT}, 0)"
_SCHEDULES = f"SELECT DISTINCT {_HASH}, {_TEXT} FROM monitor_series WHERE {_HASH} = ANY(%b)"  # noqa: S608
# What ``allowed_ages`` needs: read it along with other columns. *slack* is negative if nothing is due.
COLUMNS = {
    "schedule": ("integer", _HASH),
    "slack": (
        "integer",
        f"CASE WHEN enabled AND NOT starts_with(probe, '{IMPORTED}')"
        " THEN ceil(limit_seconds + jitter_seconds + delay_seconds)::bigint ELSE -1 END",
    ),
}
_gap_by_hash: dict[int, float] = {}  # a pure function of the schedule: it never becomes invalid
_MOST_KEPT = 10_000


def allowed_ages(rows: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return ``monitor.series.staleness.allowed_age`` of each series of *rows*, in seconds.

    *rows* has the columns ``series`` and ``COLUMNS``. A leader that is not in *rows* counts as disabled.
    Nothing is due of imported series.
    """
    hashes, position = np.unique(rows["schedule"], return_inverse=True)
    gaps, is_due = _gaps(hashes.tolist())[position], rows["slack"] >= 0
    pairs = Series.objects.exclude(leader=None).order_by().values_list("pk", "leader")
    of_leaders = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    follower, leader = (latest.positions_of(keys, rows["series"]) for keys in of_leaders.T)
    is_shown = follower >= 0
    follower, leader = follower[is_shown], leader[is_shown]
    gaps[follower] = latest.take(gaps, leader, UNSCHEDULED)
    is_due[follower] &= latest.take(is_due, leader, default=False)
    return np.where(is_due, gaps + rows["slack"], UNSCHEDULED)


def _gaps(hashes: Collection[int]) -> NDArray[np.float64]:
    """Return the allowed age, without slack, of the schedule with each of *hashes*."""
    unknown = [each for each in hashes if each not in _gap_by_hash]
    if unknown:
        if len(_gap_by_hash) + len(unknown) > _MOST_KEPT:
            _gap_by_hash.clear()
            unknown = list(hashes)
        with binary.cursor() as cursor:
            found = cursor.execute(_SCHEDULES.encode(), [unknown], prepare=False).fetchall()
        for number, text in found:
            zone, _, schedule = text.partition("\n")
            _gap_by_hash[number] = allowed_age_seconds(schedule, zone, limit_seconds=0)
    # A series that was changed between the two statements is not stale yet.
    return np.array([_gap_by_hash.get(each, UNSCHEDULED) for each in hashes], dtype=np.float64)
