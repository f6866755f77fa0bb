"""The patterns of the durations of a series: distribution, hours of the week, and what makes them vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from monitor.depot.rollups.histogram import BinnedSigmas, sigma_histogram
from monitor.depot.rollups.hour_of_week import HourOfWeek, by_hour_of_week
from monitor.depot.samples.variance import VarianceShares, variance_shares
from monitor.models import Metric
from monitor.web.charts import stage_shades
from monitor.web.charts.chart_choice import TOTAL
from monitor.web.charts.stage_shades import DrawnStage

if TYPE_CHECKING:
    from monitor.models import Segment, Series

LONGEST = timedelta(days=366)  # older values of a longer range are left out


@dataclass(frozen=True)
class StageShare:
    """The *share* of a stage in the variance of the total."""

    stage: DrawnStage
    share: float


@dataclass(frozen=True)
class Patterns:
    """Patterns of one metric in one segment; *start* is the first instant that counts."""

    metric: str
    unit: str
    segment: Segment
    start: datetime
    histogram: BinnedSigmas | None
    week: HourOfWeek
    variance: VarianceShares | None
    shares: Sequence[StageShare]


def patterns(
    series: Series, segment: Segment, start: datetime | None, end: datetime, zone: tzinfo, metric: str = TOTAL
) -> Patterns | None:
    """Return the patterns of *metric* from *start* until before *end*; None if *segment* lacks the metric."""
    metrics = {each.name: each for each in Metric.objects.filter(segment=segment)}
    if metric not in metrics:
        return None
    start = max(start, end - LONGEST) if start else end - LONGEST
    stages = stage_shades.of_probe(series.probe, stage_shades.measured(metrics))
    parts = {
        stage.name: metrics[name].pk for stage in stages if (name := f"stage.{stage.name}.seconds") in metrics
    }
    variance = variance_shares(metrics[TOTAL].pk, parts, start, end) if TOTAL in metrics else None
    by_name = {stage.name: stage for stage in stages}
    shown = variance.shares.items() if variance else ()
    return Patterns(
        metric=metric,
        unit=metrics[metric].unit,
        segment=segment,
        start=start,
        histogram=sigma_histogram(metrics[metric], start, end),
        week=by_hour_of_week([metrics[metric].pk], start, end, zone),
        variance=variance,
        shares=[StageShare(by_name[name], share) for name, share in shown],
    )
