"""Runs as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.csvfile import to_csv

if TYPE_CHECKING:
    from monitor.models.run import RunQuerySet

MOST_ROWS = 10_000
_COLUMNS = {
    "scheduled": "slot",
    "series": "series__name",
    "outcome": "state",
    "stage": "stage",
    "resource": "failed_resource",
    "cause": "signature__name",
    "reason": "reason",
    "trigger": "trigger",
    "started": "started_at",
    "ended": "ended_at",
    "run": "id",
}


def run_table_csv(runs: RunQuerySet) -> str:
    """Return the newest ``MOST_ROWS`` of *runs* as CSV text with a header; times are UTC."""
    rows = runs.order_by("-slot", "-pk").values_list(*_COLUMNS.values())[:MOST_ROWS]
    times = [name in {"scheduled", "started", "ended"} for name in _COLUMNS]
    texts = (
        [cell.isoformat() if is_time and cell else cell for cell, is_time in zip(row, times, strict=True)]
        for row in rows
    )
    return to_csv([list(_COLUMNS), *texts])
