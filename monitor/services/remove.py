"""Remove series with all that they have, also while reports of them come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.depot.locks import yielding
from monitor.models import Series

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet


def remove(series: SeriesQuerySet) -> None:
    """Remove *series*, their runs, reports and values. Who stores a report of one just then either was first,
    or is told that there is no such series."""
    yielding(lambda: _remove(series))


def _remove(series: SeriesQuerySet) -> None:
    mine = series.order_by("name").select_for_update(of=("self",))
    Series.objects.filter(pk__in=[one.pk for one in mine]).delete()
