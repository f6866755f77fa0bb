"""Summarise the depot: outcomes, stages, totals and the latest forecast of each series."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils import timezone

from monitor.analysis.forecasts.defaults import METHOD
from monitor.depot.rollups.statistics import statistics
from monitor.depot.series.segments import current_metrics
from monitor.models import Forecast, Metric, Run, Series
from reporters import report as wire

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


def summarise(series: Collection[Series], start: datetime) -> dict[str, Any]:
    """Return a summary of the runs since *start* for each of *series*, by name, as JSON values.

    The figures of stages and totals cover only the current segment.
    """
    return {each.name: _summary(each, start) for each in series}


def _summary(series: Series, start: datetime) -> dict[str, Any]:
    runs = Run.objects.filter(series=series, slot__gte=start)
    metrics = current_metrics(Series.objects.filter(pk=series.pk)).order_by("pk")
    stages = [metric for metric in metrics if metric.name.startswith("stage.")]
    totals = [metric for metric in metrics if metric.name in wire.totals(())]
    return {
        "runs": dict(Counter(runs.values_list("state", flat=True))),
        "stages": {metric.name.split(".")[1]: _figures(metric, start) for metric in stages},
        "totals": {metric.name.split(".")[0]: _figures(metric, start) for metric in totals},
        "forecast": _forecast(totals),
    }


def _figures(metric: Metric, start: datetime) -> dict[str, float | int | str | None]:
    """Return the statistics of the values of passed runs; *n* is the number of these values."""
    figures = msgspec.structs.asdict(statistics(metric, start, timezone.now()).figures)
    chosen = {name: figures[name] for name in ("mean", "min", "max", "stdev")}
    return {"n": figures["passed"], "unit": metric.unit, **chosen}


def _forecast(metrics: Collection[Metric]) -> dict[str, Any] | None:
    totals = Forecast.objects.filter(metric__in=metrics, metric__name="total.seconds")
    latest = totals.filter(method=METHOD, at=None).first()
    if latest is None:
        return None
    return {
        "metric": "total.seconds",
        "unit": "seconds",
        "method": latest.method,
        "mean": latest.mean,
        "median": latest.median,
        "interval": {"level": latest.level, "lower": latest.lower, "upper": latest.upper},
        "n": latest.n,
        "issued_at": latest.issued_at.isoformat(),
    }
