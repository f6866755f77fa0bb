"""Record what runs used at their sites, for the daily budgets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.models import Run

_USED = Arrays("uuid", "text", "timestamptz", "int8", "float8")
# A resource that has been renamed or deleted counts nowhere.
_UPSERT = f"""
INSERT INTO monitor_usage (run_id, site_id, began_at, bytes, cpu_seconds)
SELECT used.run, resource.site_id, used.began_at, sum(used.bytes), sum(used.cpu_seconds)
FROM unnest({_USED.placeholders})
    AS used (run, resource, began_at, bytes, cpu_seconds)
JOIN monitor_resource AS resource ON resource.name = used.resource
GROUP BY used.run, resource.site_id, used.began_at
ON CONFLICT (run_id, site_id) DO UPDATE
SET began_at = EXCLUDED.began_at, bytes = EXCLUDED.bytes, cpu_seconds = EXCLUDED.cpu_seconds
"""  # noqa: S608  # constants


class UsageRow(NamedTuple):
    """The usage of a resource by a run; *bytes* and *cpu_seconds* are None while no report has arrived."""

    run: uuid.UUID
    resource: str
    began_at: datetime
    bytes: int | None = None
    cpu_seconds: float | None = None


def record(rows: Iterable[UsageRow]) -> None:
    """Store the sum of *rows* for each run and site; replace an earlier sum of the same run and site."""
    columns = list(zip(*rows, strict=True))
    if columns:
        with binary.cursor() as cursor:
            cursor.execute(_UPSERT, _USED.pack(columns))


def record_lost(runs: Iterable[Run]) -> None:
    """Record an unknown usage for each of the lost *runs* that had started; a late report replaces it."""
    record(
        UsageRow(run.pk, name, run.started_at)
        for run in runs
        if run.started_at is not None
        for name in {binding.resource.name for binding in run.series.bindings.all()}
    )
