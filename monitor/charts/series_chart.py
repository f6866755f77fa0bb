"""The data of the charts of a series: plain values by column, ready for JSON.

Times are UTC, ``YYYY-MM-DD HH:MM:SS.ffffff``, as Plotly reads them without a zone; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.db.models import Min
from django.urls import reverse

from monitor.charts import stage_shades
from monitor.charts.time_range import PageRange
from monitor.depot.rollups.statistics import statistics_by
from monitor.depot.samples.read import Point, histories
from monitor.forecasts.defaults import METHOD
from monitor.ledger.attribution import outcome_label
from monitor.models import Forecast, Metric, Run, Segment
from monitor.models.forecast import ForecastQuerySet
from monitor.models.run import ENDED, State
from monitor.series.segment_diff import segment_changes
from monitor.series.segment_history import Boundary

if TYPE_CHECKING:
    from monitor.charts.stage_shades import DrawnStage
    from monitor.models import Series

MOST_RUNS = 2000  # of a chart by run: its traces have a point for each
BY_DAY_FROM = timedelta(days=45)
TOTAL = "total.seconds"
RATE = "bytes_per_second"
_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class ChartDay:
    """Totals of the passed runs of one *segment* (primary key) on the day that begins at *time*."""

    segment: int
    time: datetime
    passed: int
    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class SeriesChart:
    """The history of one series by run, or by day for a long range.

    *cut* means that older runs were left out, because a chart has at most ``MOST_RUNS``.
    """

    runs: Sequence[Run]
    segments: Sequence[int | None]  # primary key of the segment of each run; None without values
    boundaries: Sequence[Boundary]
    cut: bool
    stages: Sequence[DrawnStage]
    seconds: Mapping[str, Sequence[float | None]]  # by stage, one value per run
    totals: Sequence[float | None]  # None for runs that did not pass
    forecasts: Sequence[Forecast]  # oldest first, of runs in the range
    pending: Forecast | None  # of the next run, if the current segment has one
    next_slot: datetime | None
    rates: Mapping[str, Sequence[float | None]]  # by metric, in bytes per second, one value per run
    days: Sequence[ChartDay] = ()

    @property
    def unusual(self) -> list[str]:
        """The states of the runs, without ``passed``."""
        return sorted({run.state for run in self.runs} - {State.PASSED})

    @property
    def newest_slot(self) -> datetime | None:
        return self.runs[-1].slot if self.runs else None

    def as_json(self) -> dict[str, Any]:
        """Return the chart as JSON for the browser."""
        return {
            "runs": [_run(run) for run in self.runs],
            "segments": list(self.segments),
            "boundaries": [_boundary(boundary) for boundary in self.boundaries],
            "stages": [asdict(stage) for stage in self.stages],
            "seconds": {name: _rounded(values) for name, values in self.seconds.items()},
            "totals": _rounded(self.totals),
            "forecasts": [_forecast(forecast) for forecast in self.forecasts],
            "pending": self._pending(),
            "rates": {name: _rounded(values) for name, values in self.rates.items()},
            "days": [_day(day) for day in self.days],
        }

    def _pending(self) -> dict[str, Any] | None:
        if self.pending is None or self.next_slot is None:
            return None
        return {**_forecast(self.pending), "time": _time(self.next_slot)}


def chart(series: Series, chosen: PageRange, current: Segment | None) -> SeriesChart:
    """Return the chart of the *chosen* range.

    The chart has runs with their values and forecasts or, for a long range, days. *current* is the segment of
    the next run.
    """
    if chosen.span is None or chosen.span > BY_DAY_FROM:
        return SeriesChart([], [], [], False, [], {}, [], [], None, None, {}, _days(series, chosen))
    metrics = dict(Metric.objects.filter(segment__series=series).values_list("name", "unit"))
    shown = stage_shades.of_probe(series.probe, _measured_stages(metrics))
    rates = sorted(name for name, unit in metrics.items() if unit == RATE)
    runs, cut = _ended_runs(series, chosen)
    points = _points(series, runs, [*(_metric(stage.name) for stage in shown), TOTAL, *rates])
    segments = _segments(points, runs)
    return SeriesChart(
        runs=runs,
        segments=segments,
        boundaries=_boundaries(runs, segments),
        cut=cut,
        stages=shown,
        seconds={stage.name: _column(points.get(_metric(stage.name), []), runs) for stage in shown},
        totals=_column(points.get(TOTAL, []), runs),
        forecasts=_forecasts(series, runs),
        pending=_pending(current),
        next_slot=Run.objects.filter(series=series).pending().aggregate(Min("slot"))["slot__min"],
        rates={name: _column(points[name], runs) for name in rates if name in points},
    )


def _ended_runs(series: Series, chosen: PageRange) -> tuple[list[Run], bool]:
    """Return the ended runs of *series* in *chosen*, oldest first, and whether runs were left out.

    At most ``MOST_RUNS`` runs are returned; if there are more, the oldest are left out.
    """
    ended = Run.objects.filter(series=series, state__in=ENDED, slot__lt=chosen.end).order_by("-slot")
    if chosen.start is not None:
        ended = ended.filter(slot__gte=chosen.start)
    runs = list(ended[: MOST_RUNS + 1])
    return runs[:MOST_RUNS][::-1], len(runs) > MOST_RUNS


def _days(series: Series, chosen: PageRange) -> list[ChartDay]:
    """Return the days on which a run passed, sorted by time."""
    start = chosen.start or _first_slot(series)
    if start is None:
        return []
    totals = Metric.objects.filter(segment__series=series, name=TOTAL)
    days = [
        ChartDay(metric.segment_id, day.start, day.passed, day.mean, day.min, day.max)
        for metric in totals
        for day in statistics_by(metric, start, chosen.end, "day").buckets
        if day.mean is not None and day.min is not None and day.max is not None
    ]
    return sorted(days, key=lambda day: (day.time, day.segment))


def _first_slot(series: Series) -> datetime | None:
    first: datetime | None = series.runs.ended().aggregate(Min("slot"))["slot__min"]
    return first


def _metric(stage: str) -> str:
    return f"stage.{stage}.seconds"


def _measured_stages(metrics: Mapping[str, str]) -> list[str]:
    names = [name for name in metrics if name.startswith("stage.") and name.endswith(".seconds")]
    return [name.removeprefix("stage.").removesuffix(".seconds") for name in names]


def _points(series: Series, runs: Sequence[Run], names: list[str]) -> dict[str, list[Point]]:
    return histories(series, names, start=runs[0].slot, passed_only=False) if runs else {}


def _column(points: Sequence[Point], runs: Sequence[Run]) -> list[float | None]:
    """Return one value per run, in the order of *runs*; None for a run that has no value in *points*."""
    values = {point.time: point.value for point in points}
    return [values.get(run.slot) for run in runs]


def _segments(points: Mapping[str, Sequence[Point]], runs: Sequence[Run]) -> list[int | None]:
    """Return the primary key of the segment of each run; None for a run without values."""
    by_slot = {point.time: point.segment for of_metric in points.values() for point in of_metric}
    return [by_slot.get(run.slot) for run in runs]


def _boundaries(runs: Sequence[Run], segments: Sequence[int | None]) -> list[Boundary]:
    measured = [(run, segment) for run, segment in zip(runs, segments, strict=True) if segment is not None]
    crossed = [(old, new, run.slot) for (_, old), (run, new) in pairwise(measured) if old != new]
    by_key = (
        Segment.objects.in_bulk({key for old, new, _ in crossed for key in (old, new)}) if crossed else {}
    )
    return [
        Boundary(time, by_key[new], segment_changes(by_key[old], by_key[new])) for old, new, time in crossed
    ]


def _forecasts(series: Series, runs: Sequence[Run]) -> list[Forecast]:
    """Return the forecasts whose actual values come from *runs*, at most one per run, oldest first."""
    if not runs:
        return []
    issued = _issued().filter(metric__segment__series=series).select_related("metric")
    scored = issued.scored().filter(truth_time__gte=runs[0].slot, truth_time__lte=runs[-1].slot)
    return list(
        {
            forecast.truth_time: forecast for forecast in scored.order_by("truth_time", "last_known_at")
        }.values()
    )


def _pending(current: Segment | None) -> Forecast | None:
    if current is None:
        return None
    newest = (
        _issued()
        .filter(metric__segment=current)
        .select_related("metric")
        .order_by("-last_known_at", "-pk")
        .first()
    )
    return newest if newest and newest.truth is None else None


def _issued() -> ForecastQuerySet:
    return Forecast.objects.filter(metric__name=TOTAL, method=METHOD, at=None)


def _run(run: Run) -> dict[str, Any]:
    return {
        "slot": _time(run.slot),
        "state": run.state,
        "words": outcome_label(run.state),
        "stage": run.stage,
        "reason": run.reason[:_REASON_CHARACTERS],
        "url": reverse("run", args=[run.pk]),
    }


def _day(day: ChartDay) -> dict[str, Any]:
    return {
        "segment": day.segment,
        "time": _time(day.time),
        "passed": day.passed,
        "mean": round(day.mean, 6),
        "lowest": round(day.lowest, 6),
        "highest": round(day.highest, 6),
    }


def _boundary(boundary: Boundary) -> dict[str, Any]:
    return {
        "time": _time(boundary.time),
        "number": boundary.segment.number,
        "words": ", ".join(map(str, boundary.changes)),
    }


def _forecast(forecast: Forecast) -> dict[str, Any]:
    return {
        "segment": forecast.metric.segment_id,
        "time": _time(forecast.truth_time) if forecast.truth_time else None,
        "median": round(forecast.median, 6),
        "lower": round(forecast.lower, 6),
        "upper": round(forecast.upper, 6),
        "level": forecast.level,
    }


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S.%f}"


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 6) for value in values]
