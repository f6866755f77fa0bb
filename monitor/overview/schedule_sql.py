"""SQL of the schedule: runs of resources, counted by the interval of their slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monitor.db import binary
from monitor.models.run import PLANNED, State
from monitor.models.series import VISIBLE, visibility

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

_PLANNED = ", ".join(f"'{trigger}'" for trigger in PLANNED)
# A planned run of a disabled series does not start.
_COUNTS = f"""
SELECT bound.resource, floor(extract(epoch FROM run.slot - %(start)b::timestamptz) / %(step)b)::int AS step,
    run.state, count(*)
FROM (
    SELECT DISTINCT binding.resource_id AS resource, series.id, series.enabled
    FROM monitor_binding AS binding JOIN monitor_series AS series ON series.id = binding.series_id
    WHERE binding.resource_id = ANY (%(resources)b::bigint[]) AND {VISIBLE}
) AS bound
JOIN monitor_run AS run ON run.series_id = bound.id
WHERE run.slot >= %(start)b AND run.slot < %(end)b
    AND (run.state <> '{State.EXPECTED}' OR bound.enabled OR run.trigger NOT IN ({_PLANNED}))
GROUP BY 1, 2, 3
"""  # noqa: S608  # constants of this package


def counts_of_runs(
    user: AbstractBaseUser | AnonymousUser,
    resources: Sequence[int],
    start: datetime,
    end: datetime,
    step_seconds: float,
) -> list[tuple[int, int, str, int]]:
    """Return (resource, number of the interval, state of runs, count); intervals without runs are absent."""
    parameters = {"resources": list(resources), "start": start, "end": end, "step": step_seconds}
    with binary.cursor() as cursor:
        return cursor.execute(_COUNTS, {**parameters, **visibility(user)}).fetchall()
