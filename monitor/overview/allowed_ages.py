"""How old the newest results of many series may be, from columns of the table of series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.models.series import IMPORTED
from monitor.overview import latest
from monitor.series.staleness import UNSCHEDULED, allowed_age_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

# What ``allowed_ages`` needs: read it along with other columns. A zone and a schedule contain no line breaks.
COLUMNS = {
    "schedule": ("text", "timezone || E'\\n' || schedule"),
    "limit": ("integer", "ceil(limit_seconds)::bigint"),
    "later": ("integer", "ceil(jitter_seconds + delay_seconds)::bigint"),
    "leader": ("integer", "coalesce(leader_id, 0)"),
    "due": ("integer", f"(enabled AND NOT starts_with(probe, '{IMPORTED}'))::int"),
}


def allowed_ages(rows: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return ``monitor.series.staleness.allowed_age`` of each series of *rows*, in seconds.

    *rows* has the columns ``series`` and ``COLUMNS``. A leader that is not in *rows* counts as disabled.
    Nothing is due of imported series.
    """
    follows = rows["leader"] > 0
    leader = latest.positions_of(rows["leader"][follows], rows["series"])
    gaps, is_due = _gaps(rows["schedule"]), rows["due"] > 0
    gaps[follows] = latest.take(gaps, leader, UNSCHEDULED)
    is_due[follows] &= latest.take(is_due, leader, default=False)
    return np.where(is_due, gaps + rows["limit"] + rows["later"], UNSCHEDULED)


def _gaps(schedules: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return the allowed age by each of *schedules*, a zone and a schedule on two lines."""
    texts = schedules.tolist()
    by_text = {}
    for text in set(texts):
        zone, _, schedule = text.partition("\n")
        by_text[text] = allowed_age_seconds(schedule, zone, limit_seconds=0)
    return np.fromiter((by_text[text] for text in texts), np.float64, len(texts))
