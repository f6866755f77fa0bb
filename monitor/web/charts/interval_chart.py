"""The chart of a series by hour, day, week, month or year: median, 10th to 90th percentile, failed share.

Values come from rollups, run counts from the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Count
from django.db.models.functions import Trunc

from monitor.core.db.timestamps import moment
from monitor.depot.rollups.combine import Bands
from monitor.depot.rollups.statistics import bands_by
from monitor.models import Metric, Run
from monitor.models.run import DID_NOT_PASS, ENDED, State
from monitor.web.charts import stage_shades
from monitor.web.charts.chart_choice import TOTAL
from monitor.web.charts.chart_table import DAY, TIME, ChartTable, Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Series
    from monitor.web.charts.stage_shades import DrawnStage

MOST_READS = 48  # metrics of stages: each is read by itself
HOUR = "hour"
_KINDS = ("median", "p10", "p90", "mean", "lowest", "highest")


@dataclass(frozen=True)
class RunCounts:
    """The runs of one interval that ended, without skipped ones, and those of them that did not pass."""

    runs: int = 0
    failed: int = 0

    @property
    def share(self) -> float | None:
        return self.failed / self.runs if self.runs else None


@dataclass(frozen=True)
class SegmentBands:
    """The intervals of one segment: its primary key, its number, and columns of its values."""

    segment: int
    number: int
    bands: Bands


@dataclass(frozen=True)
class IntervalChart:
    """The history of one series by *interval*.

    Attributes:
        segments: in order of number; segments are never mixed.
        counts: of each interval with an ended run, by its start.
        stages, seconds: the mean of each stage by the start of the interval; empty if the chart has too many
            segments, or shows another metric than the total.
    """

    metric: str
    unit: str
    interval: str
    segments: Sequence[SegmentBands]
    counts: Mapping[datetime, RunCounts]
    stages: Sequence[DrawnStage] = ()
    seconds: Mapping[str, Mapping[datetime, float]] = field(default_factory=dict)
    runs: Sequence[Run] = ()
    rates: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    boundaries: Sequence[Any] = ()
    cut = False
    unusual: Sequence[str] = ()
    newest_slot: datetime | None = None

    @property
    def has_values(self) -> bool:
        return bool(self.counts or self.segments)

    @property
    def table(self) -> ChartTable:
        """Every value of the chart: a row for each interval of each segment.

        Runs and failed runs are those of the whole interval.
        """
        label = {"day": "Day", "week": "Week from", "month": "Month", "year": "Year"}
        columns = [
            Column("Hour", "start", TIME)
            if self.interval == HOUR
            else Column(f"{label[self.interval]} (UTC)", "start", DAY),
            Column("Segment", "segment", "count"),
        ]
        columns += [Column("Runs", "runs", "count"), Column("Failed", "failed", "count")]
        columns += [Column("Passed", "passed", "count")]
        columns += [Column(kind.capitalize(), f"{kind}_{self.unit}", self.unit) for kind in _KINDS]
        columns += [
            Column(f"{stage.name}, mean", f"{stage.name}_mean_seconds", "seconds") for stage in self.stages
        ]
        rows = []
        for part in self.segments:
            for start, passed, values in _rows(part.bands):
                counts = self.counts.get(start, RunCounts())
                means = [self.seconds[stage.name].get(start) for stage in self.stages]
                rows.append([start, part.number, counts.runs, counts.failed, passed, *values, *means])
        nothing = [None] * (len(_KINDS) + len(self.stages))
        for start in self.counts.keys() - {row[0] for row in rows}:
            counts = self.counts[start]
            rows.append([start, None, counts.runs, counts.failed, 0, *nothing])
        return ChartTable(columns, sorted(rows, key=lambda row: (row[0], row[1] or 0)))

    def axis_zone(self, zone: tzinfo) -> tzinfo:
        """Return the zone of the time axis for a reader in *zone*: intervals of days are days of UTC."""
        return zone if self.interval == HOUR else UTC

    def as_json(self, zone: tzinfo = UTC) -> dict[str, Any]:
        """Return the chart as JSON for the browser, with times of ``axis_zone``."""
        zone = self.axis_zone(zone)
        starts = sorted(self.counts)
        measured = sorted({start for values in self.seconds.values() for start in values})
        return {
            "interval": self.interval,
            "zone": str(zone),
            "metric": self.metric,
            "unit": self.unit,
            "runs": [],
            "rates": {},
            "boundaries": [],
            "intervals": [_segment(part, zone) for part in self.segments],
            "stages": [asdict(stage) for stage in self.stages],
            "time": [_time(start, zone) for start in measured],  # of the stages
            "seconds": {
                name: [round(values[start], 4) if start in values else None for start in measured]
                for name, values in self.seconds.items()
            },
            "counts": {
                "time": [_time(start, zone) for start in starts],
                "runs": [self.counts[start].runs for start in starts],
                "failed": [self.counts[start].failed for start in starts],
            },
        }


def interval_chart(
    series: Series, start: datetime, end: datetime, interval: Any, metric: str
) -> IntervalChart:
    """Return the chart of *metric* from *start* until before *end*."""
    metrics = list(
        Metric.objects.filter(segment__series=series, segment__began_at__lt=end)
        .order_by("segment__number")
        .values_list("pk", "name", "unit", "segment", "segment__number")
    )
    parts = [
        SegmentBands(segment, number, bands_by(pk, start, end, interval).columns)
        for pk, name, _, segment, number in metrics
        if name == metric
    ]
    shown = [part for part in parts if len(part.bands.start)]
    present = {part.segment for part in shown}
    stages = _stages(series, [name for _, name, *_ in metrics]) if metric == TOTAL else []
    by_stage = {f"stage.{stage.name}.seconds": stage.name for stage in stages}
    reads = [
        (pk, by_stage[name]) for pk, name, _, segment, _ in metrics if name in by_stage and segment in present
    ]
    if len(reads) > MOST_READS:
        stages, reads = [], []
    return IntervalChart(
        metric=metric,
        unit=next((unit for _, name, unit, *_ in metrics if name == metric), "seconds"),
        interval=interval,
        segments=shown,
        counts=run_counts(series, start, end, interval),
        stages=stages,
        seconds=_means(reads, start, end, interval),
    )


def run_counts(series: Series, start: datetime, end: datetime, interval: str) -> dict[datetime, RunCounts]:
    """Return the counts of the runs from *start* until before *end*, by the start of their interval (UTC)."""
    ended = Run.objects.filter(series=series, state__in=ENDED, slot__gte=start, slot__lt=end)
    rows = (
        ended.exclude(state=State.SKIPPED)
        .order_by()
        .values_list(Trunc("slot", interval, tzinfo=UTC), "state")
    )
    counts: dict[datetime, list[int]] = {}
    for interval_start, state, count in rows.annotate(count=Count("pk")):
        both = counts.setdefault(interval_start, [0, 0])
        both[0] += count
        both[1] += count if state in DID_NOT_PASS else 0
    return {time: RunCounts(*both) for time, both in sorted(counts.items())}


def _stages(series: Series, metrics: Sequence[str]) -> list[DrawnStage]:
    measured = stage_shades.measured(metrics)
    return [stage for stage in stage_shades.of_probe(series.probe, measured) if stage.name in measured]


def _means(
    reads: Sequence[tuple[int, str]], start: datetime, end: datetime, interval: Any
) -> dict[str, dict[datetime, float]]:
    """Return the mean of each stage by the start of the interval, over all segments, weighted by runs."""
    columns: dict[str, list[Bands]] = {}
    for pk, stage in reads:
        columns.setdefault(stage, []).append(bands_by(pk, start, end, interval, has_quantiles=False).columns)
    return {stage: _mean(parts) for stage, parts in columns.items()}


def _mean(parts: Sequence[Bands]) -> dict[datetime, float]:
    starts = np.concatenate([part.start for part in parts])
    passed = np.concatenate([part.passed for part in parts])
    sums = np.concatenate([part.mean for part in parts]) * passed
    unique, group = np.unique(starts, return_inverse=True)
    means = np.bincount(group, sums) / np.bincount(group, passed) if len(unique) else sums
    return dict(zip(map(moment, unique.tolist()), means.tolist(), strict=True))


def _rows(bands: Bands) -> list[tuple[datetime, int, list[float]]]:
    """Return (start, passed runs, values in the order of ``_KINDS``) of each interval."""
    p10, median, p90 = bands.quantiles.T
    values: NDArray[np.float64] = np.column_stack([median, p10, p90, bands.mean, bands.min, bands.max])
    starts = map(moment, bands.start.tolist())
    return list(zip(starts, bands.passed.tolist(), values.tolist(), strict=True))


def _segment(part: SegmentBands, zone: tzinfo) -> dict[str, Any]:
    p10, median, p90 = (column.round(4).tolist() for column in part.bands.quantiles.T)
    return {
        "segment": part.segment,
        "number": part.number,
        "time": [_time(moment(start), zone) for start in part.bands.start.tolist()],
        "utc": [f"{moment(start):%Y-%m-%d %H:%M} UTC" for start in part.bands.start.tolist()],
        "passed": part.bands.passed.tolist(),
        "median": median,
        "p10": p10,
        "p90": p90,
        "mean": part.bands.mean.round(4).tolist(),
        "lowest": part.bands.min.round(4).tolist(),
        "highest": part.bands.max.round(4).tolist(),
    }


def _time(time: datetime, zone: tzinfo) -> str:
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M:%S}"
