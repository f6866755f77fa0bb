"""Remove series with all that they have, also while reports of them come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.db.advisory_locks import retry_on_lock_timeout
from monitor.models import Metric, Series

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet


def delete_series(series: SeriesQuerySet) -> None:
    """Remove *series*, their runs, reports, values and forecasts. Who stores a report of one just then either
    was first, or is told that there is no such series."""
    retry_on_lock_timeout(lambda: _remove(series))


def _remove(series: SeriesQuerySet) -> None:
    mine = [one.pk for one in series.order_by("name").select_for_update(of=("self",))]
    # Who follows a metric, or forecasts it, writes rows of it alone.
    metrics = Metric.objects.filter(segment__series__in=mine).order_by("pk").select_for_update(of=("self",))
    list(metrics.values_list("pk", flat=True))
    Series.objects.filter(pk__in=mine).delete()
