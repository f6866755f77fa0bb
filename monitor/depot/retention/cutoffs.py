"""Look up the retention cutoffs of series: data before a cutoff are no longer stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from monitor.models import RetentionCutoff
from monitor.models.retention_cutoff import DataKind

SHORTEST_RETENTION = timedelta(days=1)


@dataclass(frozen=True)
class RetentionCutoffs:
    """The time from which data are stored, by pair (key of the series, kind of data).

    If a pair is absent, all data of this series and kind are stored.
    """

    kept_from: Mapping[tuple[int, str], datetime] = field(default_factory=dict)

    def is_kept(self, kind: DataKind, series: int, slot: datetime) -> bool:
        """Return whether data of this *kind*, *series* (its primary key) and *slot* are still stored."""
        since = self.kept_from.get((series, kind))
        return since is None or slot >= since


def cutoffs_of(slots: Iterable[tuple[int, datetime]], now: datetime) -> RetentionCutoffs:
    """Return the cutoffs that may affect data of *slots*, pairs (key of the series, slot), at *now*.

    Must be called in the transaction that writes the data: retention waits until it has ended. Slots younger
    than ``SHORTEST_RETENTION`` need no query.
    """
    old = {series for series, slot in slots if slot < now - SHORTEST_RETENTION}
    if not old:
        return RetentionCutoffs()
    rows = (
        RetentionCutoff.objects.filter(series__in=old)
        .order_by()
        .values_list("series_id", "kind", "kept_from")
    )
    return RetentionCutoffs({(series, kind): since for series, kind, since in rows})
