"""SQL of the schedule: runs of resources, counted by the interval of their slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monitor.core.db import binary
from monitor.models.run import PLANNED, State
from monitor.models.suite import VISIBLE, visibility

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

_PLANNED = ", ".join(f"'{trigger}'" for trigger in PLANNED)
# A planned run of a disabled series does not start. ``OFFSET 0`` keeps the planner from reading all runs of
# a partition: a page needs those of some thousand series.
_COUNTS = f"""
SELECT bound.resource, date_bin(%(step)b, run.slot, %(start)b) AS step, run.state, count(*)
FROM (
    SELECT DISTINCT resource_id AS resource, series_id FROM monitor_binding
    WHERE resource_id = ANY (%(resources)b::bigint[])
) AS bound
CROSS JOIN LATERAL (
    SELECT series.id, series.enabled FROM monitor_series AS series
    WHERE series.id = bound.series_id AND {VISIBLE} OFFSET 0
) AS series
CROSS JOIN LATERAL (
    SELECT slot, state, trigger FROM monitor_run
    WHERE series_id = series.id AND slot >= %(start)b AND slot < %(end)b OFFSET 0
) AS run
WHERE run.state <> '{State.EXPECTED}' OR series.enabled OR run.trigger NOT IN ({_PLANNED})
GROUP BY 1, 2, 3
"""  # noqa: S608  # constants of this package


def counts_of_runs(
    user: AbstractBaseUser | AnonymousUser,
    resources: Sequence[int],
    start: datetime,
    end: datetime,
    step: timedelta,
) -> list[tuple[int, datetime, str, int]]:
    """Return (resource, begin of the interval, state of runs, count); intervals without runs are absent."""
    parameters = {"resources": list(resources), "start": start, "end": end, "step": step}
    with binary.cursor() as cursor:
        return cursor.execute(_COUNTS, {**parameters, **visibility(user)}).fetchall()
