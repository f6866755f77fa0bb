"""Where a series' horizons are: what is before them is not taken any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from monitor.models import RetentionCutoff
from monitor.models.retention_cutoff import DataKind

LEAST = timedelta(days=1)  # everything is kept for as long


@dataclass(frozen=True)
class Horizons:
    """*kept_from* by (key of the series, kind); what is not in it is kept for ever."""

    kept_from: Mapping[tuple[int, str], datetime] = field(default_factory=dict)

    def keep(self, kind: DataKind, series: int, slot: datetime) -> bool:
        """Whether something of this *kind* and *slot* is still taken."""
        since = self.kept_from.get((series, kind))
        return since is None or slot >= since


def horizons(of: Iterable[tuple[int, datetime]], now: datetime) -> Horizons:
    """Those that matter for something of these (key of the series, slot) at *now*.

    To be asked in the transaction that writes: who takes away waits until it has ended. Of what is recent the
    depot need not be asked.
    """
    old = {series for series, slot in of if slot < now - LEAST}
    if not old:
        return Horizons()
    rows = (
        RetentionCutoff.objects.filter(series__in=old)
        .order_by()
        .values_list("series_id", "kind", "kept_from")
    )
    return Horizons({(series, kind): since for series, kind, since in rows})
