"""Delete series with their runs, reports, values and forecasts, even while reports arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.core.db.advisory_locks import retry_on_lock_timeout
from monitor.models import Metric, Series

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet


def delete_series(series: SeriesQuerySet) -> None:
    """Delete *series*, their runs, reports, values and forecasts.

    A report that arrives at the same time is either stored first and then deleted, or refused because the
    series no longer exists.
    """
    retry_on_lock_timeout(lambda: _delete(series))


def _delete(series: SeriesQuerySet) -> None:
    locked = series.order_by("name").select_for_update(of=("self",))
    keys = list(locked.values_list("pk", flat=True))
    # The locks on metrics exclude the workers that write forecast states, which do not lock the series.
    metrics = Metric.objects.filter(segment__series__in=keys).order_by("pk").select_for_update(of=("self",))
    list(metrics.values_list("pk", flat=True))
    Series.objects.filter(pk__in=keys).delete()
