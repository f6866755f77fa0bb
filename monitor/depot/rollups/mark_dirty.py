"""Which hours of which series the rollups do not have as they are: marked by who changes something."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from django.db import connection

from monitor.db import binary

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

# Rows are added only, and never waited for: the same hour may be marked as often as it changes.
# Where samples have been taken away the rollups are all that is left: they are not to be distrusted.
_MARK = """
INSERT INTO monitor_dirtyhour (series_id, hour)
SELECT DISTINCT series, date_trunc('hour', slot, 'UTC')
FROM unnest(%b::bigint[], %b::timestamptz[]) AS changed (series, slot)
WHERE NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS horizon
    WHERE horizon.series_id = series AND kind = 'samples' AND slot < gone_before
)
"""
_MARK_RUNS = """
INSERT INTO monitor_dirtyhour (series_id, hour)
SELECT DISTINCT series_id, date_trunc('hour', slot, 'UTC') FROM monitor_run AS run
WHERE id = ANY (%(runs)s) {of_slots} AND NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS horizon
    WHERE horizon.series_id = run.series_id AND kind = 'samples' AND slot < gone_before
)
"""


def mark(changed: Iterable[tuple[int, datetime]]) -> None:
    """Something of these (key of the series, slot) changed, in this transaction."""
    series, slots = zip(*changed, strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_MARK, [list(series), list(slots)])


def mark_runs(runs: Collection[uuid.UUID], slots: Collection[datetime] | None = None) -> None:
    """These runs ended, in this transaction. Without their *slots* all parts of the ledger are looked at."""
    of_slots = "" if slots is None else "AND slot = ANY (%(slots)s)"
    told: dict[str, Any] = {"runs": list(runs), "slots": list(slots or ())}
    with connection.cursor() as cursor:
        cursor.execute(_MARK_RUNS.format(of_slots=of_slots), told)
