"""What the charts of a series show: plain values, column by column, ready for JSON.

Times are UTC, ``YYYY-MM-DD HH:MM:SS.ffffff``, as Plotly reads them without a zone; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.db.models import Min
from django.urls import reverse

from monitor.charts import stage_shades
from monitor.charts.chart_ranges import Stretch, begin, ended_runs
from monitor.depot.rollups.statistics import statistics_by
from monitor.depot.samples.read import Point, histories
from monitor.forecasts.defaults import METHOD
from monitor.ledger.attribution import outcome_label
from monitor.models import Forecast, Metric, Run, Segment
from monitor.models.forecast import ForecastQuerySet
from monitor.models.run import State
from monitor.series.segment_diff import segment_changes
from monitor.series.segment_history import Boundary

if TYPE_CHECKING:
    from monitor.charts.stage_shades import DrawnStage
    from monitor.models import Series

MOST_POINTS = 20_000  # browsers stall from about this many SVG points
TOTAL = "total.seconds"
RATE = "bytes_per_second"
_PER_RUN = 5  # beside its stages a run has its total, its mark and three points of its forecast
_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Day:
    """What the totals of the passed runs of one *segment* (its key) came to on the day that *time* begins."""

    segment: int
    time: datetime
    passed: int
    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Chart:
    """The history of one series, run by run, or, of a long stretch, only day by day.

    *cut*: there were more runs than a browser can draw.
    """

    runs: Sequence[Run]
    segments: Sequence[int | None]  # the key of each run's segment; None where it measured nothing
    boundaries: Sequence[Boundary]
    cut: bool
    stages: Sequence[DrawnStage]
    seconds: Mapping[str, Sequence[float | None]]  # stage -> one value a run
    totals: Sequence[float | None]  # of passed runs
    forecasts: Sequence[Forecast]  # oldest first; the truth of each is in the stretch
    pending: Forecast | None  # of the run that is still to come, if the current segment has one
    next_slot: datetime | None
    rates: Mapping[str, Sequence[float | None]]  # metric -> bytes per second, one value a run
    days: Sequence[Day] = ()

    @property
    def unusual(self) -> list[str]:
        """The states other than passed that occur."""
        return sorted({run.state for run in self.runs} - {State.PASSED})

    @property
    def newest_slot(self) -> datetime | None:
        return self.runs[-1].slot if self.runs else None

    def as_json(self) -> dict[str, Any]:
        """The same for the browser."""
        return {
            "runs": [_run(run) for run in self.runs],
            "segments": list(self.segments),
            "boundaries": [_boundary(one) for one in self.boundaries],
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


def chart(series: Series, stretch: Stretch, now: datetime, current: Segment | None) -> Chart:
    """The runs of *stretch*, what they measured, and what had been forecast of them; or its days.

    *current* is the segment that the next run belongs to.
    """
    if stretch.by_day:
        return Chart([], [], [], False, [], {}, [], [], None, None, {}, _days(series, stretch, now))
    metrics = dict(Metric.objects.filter(segment__series=series).values_list("name", "unit"))
    shown = stage_shades.of_probe(series.probe, _measured_stages(metrics))
    rates = sorted(name for name, unit in metrics.items() if unit == RATE)
    at_most = MOST_POINTS // (len(shown) + len(rates) + _PER_RUN)
    runs, cut = ended_runs(series, stretch, now, at_most=at_most)
    points = _points(series, runs, [*(_metric(stage.name) for stage in shown), TOTAL, *rates])
    segments = _segments(points, runs)
    return Chart(
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


def _days(series: Series, stretch: Stretch, now: datetime) -> list[Day]:
    """Every day of *stretch* on which a run passed, in order of time."""
    start = begin(series, stretch, now)
    if start is None:
        return []
    totals = Metric.objects.filter(segment__series=series, name=TOTAL)
    found = [
        Day(metric.segment_id, day.start, day.passed, day.mean, day.min, day.max)
        for metric in totals
        for day in statistics_by(metric, start, now, "day").buckets
        if day.mean is not None and day.min is not None and day.max is not None
    ]
    return sorted(found, key=lambda day: (day.time, day.segment))


def _metric(stage: str) -> str:
    return f"stage.{stage}.seconds"


def _measured_stages(metrics: Mapping[str, str]) -> list[str]:
    names = [name for name in metrics if name.startswith("stage.") and name.endswith(".seconds")]
    return [name.removeprefix("stage.").removesuffix(".seconds") for name in names]


def _points(series: Series, runs: Sequence[Run], names: list[str]) -> dict[str, list[Point]]:
    return histories(series, names, start=runs[0].slot, passed_only=False) if runs else {}


def _column(points: Sequence[Point], runs: Sequence[Run]) -> list[float | None]:
    """One value a run, in the runs' order."""
    values = {point.time: point.value for point in points}
    return [values.get(run.slot) for run in runs]


def _segments(points: Mapping[str, Sequence[Point]], runs: Sequence[Run]) -> list[int | None]:
    """The key of the segment of each of *runs*."""
    found = {point.time: point.segment for of_metric in points.values() for point in of_metric}
    return [found.get(run.slot) for run in runs]


def _boundaries(runs: Sequence[Run], segments: Sequence[int | None]) -> list[Boundary]:
    known = [(run, segment) for run, segment in zip(runs, segments, strict=True) if segment is not None]
    crossed = [(old, new, run.slot) for (_, old), (run, new) in pairwise(known) if old != new]
    by_key = (
        Segment.objects.in_bulk({key for old, new, _ in crossed for key in (old, new)}) if crossed else {}
    )
    return [
        Boundary(time, by_key[new], segment_changes(by_key[old], by_key[new])) for old, new, time in crossed
    ]


def _forecasts(series: Series, runs: Sequence[Run]) -> list[Forecast]:
    """What had been forecast of *runs*, each by its own segment."""
    if not runs:
        return []
    issued = _issued().filter(metric__segment__series=series).select_related("metric")
    scored = issued.scored().filter(truth_time__gte=runs[0].slot, truth_time__lte=runs[-1].slot)
    return list({one.truth_time: one for one in scored.order_by("truth_time", "last_known_at")}.values())


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


def _day(day: Day) -> dict[str, Any]:
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
