"""Record pending changes: hours of series with changed inputs that forecasts have not used yet."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from monitor.analysis.forecasts.statements import execute

_RECORD = """
INSERT INTO monitor_pendingchange (series_id, hour, due_at)
SELECT series, hour, %(due_at)b::timestamptz
FROM unnest(%(series)b::bigint[], %(hours)b::timestamptz[]) AS changed (series, hour)
"""
_DELETE = "DELETE FROM monitor_pendingchange WHERE id = ANY (%(keys)b::bigint[])"


def record(changed: Collection[tuple[int, datetime]], due_at: datetime | None = None) -> None:
    """Record that inputs of these (series, hour) pairs changed; with *due_at*, that they become known then.

    Part of the caller's transaction.
    """
    if changed:
        series, hours = zip(*sorted(set(changed)), strict=True)
        execute(_RECORD, {"series": list(series), "hours": list(hours), "due_at": due_at})


def delete(keys: Collection[int]) -> None:
    execute(_DELETE, {"keys": list(keys)})
