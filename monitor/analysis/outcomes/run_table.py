"""Runs as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monitor.core.csvfile import to_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def run_table_csv(parts: Iterable[RunQuerySet]) -> str:
    """Return the newest ``MOST_ROWS`` runs of *parts*, newest first, as CSV with a header; times are UTC."""
    rows: list[Sequence[Any]] = []
    for runs in parts:
        newest = runs.order_by("-slot", "-pk").values_list(*_COLUMNS.values())
        rows += newest[: MOST_ROWS - len(rows)]
        if len(rows) == MOST_ROWS:
            break
    times = [name in {"scheduled", "started", "ended"} for name in _COLUMNS]
    texts = (
        [cell.isoformat() if is_time and cell else cell for cell, is_time in zip(row, times, strict=True)]
        for row in rows
    )
    return to_csv([list(_COLUMNS), *texts])
