"""Pending changes: hours of series in which inputs changed that forecasts have not used yet."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from monitor.forecasts.statements import execute, fetch

_RECORD = """
INSERT INTO monitor_pendingchange (series_id, hour, due_at)
SELECT series, hour, %(due_at)b::timestamptz
FROM unnest(%(series)b::bigint[], %(hours)b::timestamptz[]) AS changed (series, hour)
"""
_DUE = """
SELECT id AS key, series_id AS series, hour FROM monitor_pendingchange
WHERE due_at IS NULL OR due_at <= %(now)b ORDER BY id LIMIT %(at_most)b
"""
_DELETE = "DELETE FROM monitor_pendingchange WHERE id = ANY (%(keys)b::bigint[])"


class ChangedHour(NamedTuple):
    """A pending change: the *hour* (its start) of the *series* with this key."""

    key: int
    series: int
    hour: datetime


def record(changed: Collection[tuple[int, datetime]], due_at: datetime | None = None) -> None:
    """Record that inputs of these (series, hour) pairs changed, or become known at *due_at*.

    Part of the caller's transaction.
    """
    if changed:
        series, hours = zip(*sorted(set(changed)), strict=True)
        execute(_RECORD, {"series": list(series), "hours": list(hours), "due_at": due_at})


def due(now: datetime, at_most: int) -> list[ChangedHour]:
    """Return the oldest pending changes that are due."""
    return fetch(ChangedHour, _DUE, {"now": now, "at_most": at_most})


def delete(keys: Collection[int]) -> None:
    execute(_DELETE, {"keys": list(keys)})
