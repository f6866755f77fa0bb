"""The durations in seconds that the next run of a series is expected not to exceed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from monitor.depot.series.segments import current_metrics

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from monitor.models import Series

# Probes need these forecasts: credentials must outlast the run, and a job's wall-clock limit the compute
# stage.
EXPECTED_METRICS = ("total.seconds", "stage.compute.seconds")


def expected_seconds(series: QuerySet[Series]) -> dict[str, dict[str, float]]:
    """Return, by name of the series, the upper bound of the newest forecast of each of ``EXPECTED_METRICS``.

    Only forecasts for the current configuration count; series without such forecasts are absent.
    """
    metrics = current_metrics(series).filter(name__in=EXPECTED_METRICS).order_by()
    expected: dict[str, dict[str, float]] = defaultdict(dict)
    for name, metric, upper in metrics.values_list(
        "segment__series__name", "name", "forecast_state__forecast__upper"
    ):
        if upper is not None:
            expected[name][metric] = upper
    return dict(expected)
