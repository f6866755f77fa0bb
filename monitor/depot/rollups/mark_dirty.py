"""Mark hours as dirty when their samples change, so that their rollups are computed again.

Every writer of samples calls this module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from django.db import connection

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

_CHANGED = Arrays("int8", "timestamptz")
# Rows are only inserted, so writers never wait for each other: an hour may have many.
# Where samples were deleted the rollups are final.
_MARK = f"""
INSERT INTO monitor_dirtyhour (series_id, hour)
SELECT DISTINCT series, date_trunc('hour', slot, 'UTC')
FROM unnest({_CHANGED.placeholders}) AS changed (series, slot)
WHERE NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS cutoff
    WHERE cutoff.series_id = series AND kind = 'samples' AND slot < gone_before
)
"""  # noqa: S608  # constants
_MARK_RUNS = """
INSERT INTO monitor_dirtyhour (series_id, hour)
SELECT DISTINCT series_id, date_trunc('hour', slot, 'UTC') FROM monitor_run AS run
WHERE id = ANY (%(runs)s) {of_slots} AND NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS cutoff
    WHERE cutoff.series_id = run.series_id AND kind = 'samples' AND slot < gone_before
)
"""


def mark(changed: Iterable[tuple[int, datetime]]) -> None:
    """Mark as dirty the hours of *changed*: pairs (key of the series, slot) of samples that changed.

    Must be called in the transaction that changes the samples.
    """
    with binary.cursor() as cursor:
        cursor.execute(_MARK, _CHANGED.pack(zip(*changed, strict=True)))


def mark_runs(runs: Collection[uuid.UUID], slots: Collection[datetime] | None = None) -> None:
    """Mark as dirty the hours of runs that ended in this transaction.

    *slots*, if given, are the slots of the runs: they prune the partitions of the ledger.
    """
    of_slots = "" if slots is None else "AND slot = ANY (%(slots)s)"
    parameters: dict[str, Any] = {"runs": list(runs), "slots": list(slots or ())}
    with connection.cursor() as cursor:
        cursor.execute(_MARK_RUNS.format(of_slots=of_slots), parameters)
