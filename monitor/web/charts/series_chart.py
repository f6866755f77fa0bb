"""The chart of a series by run: plain values by column, ready for JSON.

Times are of the reader's zone, ``YYYY-MM-DD HH:MM:SS.ffffff``, as Plotly reads them without a zone; durations
are seconds.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Min
from django.urls import reverse

from monitor.analysis.forecasts.defaults import METHOD
from monitor.core.db.timestamps import micros
from monitor.depot.samples import sample_arrays
from monitor.depot.series.segment_diff import segment_changes
from monitor.depot.series.segment_history import Boundary
from monitor.models import Forecast, Metric, Run, Segment
from monitor.models.forecast import ForecastQuerySet
from monitor.models.run import ENDED, State
from monitor.runs.ledger.attribution import outcome_label
from monitor.web.charts import stage_shades
from monitor.web.charts.chart_choice import RUN, TOTAL, ChartChoice, interval_for, most_runs
from monitor.web.charts.chart_table import TIME, ChartTable, Column
from monitor.web.charts.interval_chart import IntervalChart, interval_chart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Series
    from monitor.models.run import RunQuerySet
    from monitor.web.charts.stage_shades import DrawnStage
    from monitor.web.charts.time_range import PageRange

RATE = "bytes_per_second"
LINES = 8  # colours of lines
_REASON_CHARACTERS = 200


@dataclass(frozen=True)
class RunChart:
    """The history of one series by run.

    *cut*: older runs were left out. Without stages, the chart has only the values of *metric*.
    """

    metric: str
    unit: str
    runs: Sequence[Run]
    segments: Sequence[int | None]  # primary key of the segment of each run; None without values
    boundaries: Sequence[Boundary]
    cut: bool
    stages: Sequence[DrawnStage]
    seconds: Mapping[str, Sequence[float | None]]  # by stage, one value per run
    values: Sequence[float | None]  # of the metric; of a total, None for runs that did not pass
    forecasts: Sequence[Forecast]  # oldest first, of runs in the range
    pending: Forecast | None  # of the next run, if the current segment has one
    next_slot: datetime | None
    rates: Mapping[str, Sequence[float | None]]  # by metric, in bytes per second, one value per run
    interval = RUN

    @property
    def has_values(self) -> bool:
        return bool(self.runs)

    @property
    def unusual(self) -> list[str]:
        """The states of the runs, without ``passed``."""
        return sorted({run.state for run in self.runs} - {State.PASSED})

    @property
    def rate_lines(self) -> list[tuple[int, str]]:
        """The number of the colour and the name of the line of each rate."""
        return [(n % LINES + 1, name.removesuffix(f".{RATE}")) for n, name in enumerate(self.rates)]

    @property
    def newest_slot(self) -> datetime | None:
        return self.runs[-1].slot if self.runs else None

    @property
    def table(self) -> ChartTable:
        """Every value of the chart, a row for each run."""
        columns = [Column("Scheduled", "slot", TIME), Column("State", "state")]
        columns += [Column(stage.name, f"{stage.name}_seconds", "seconds") for stage in self.stages]
        columns += [Column("Total" if self.metric == TOTAL else self.metric, self.metric, self.unit)]
        columns += [Column(name, name, RATE) for name in self.rates]
        kinds = ("median", "lower", "upper") if self.metric == TOTAL else ()
        columns += [Column(f"Forecast, {kind}", f"forecast_{kind}_seconds", "seconds") for kind in kinds]
        forecasts = {forecast.truth_time: forecast for forecast in self.forecasts}
        measured = [*(self.seconds[stage.name] for stage in self.stages), self.values, *self.rates.values()]
        rows = [
            [
                run.slot,
                run.state,
                *(column[number] for column in measured),
                *(getattr(forecasts.get(run.slot), kind, None) for kind in kinds),
            ]
            for number, run in enumerate(self.runs)
        ]
        return ChartTable(columns, rows)

    def axis_zone(self, zone: tzinfo) -> tzinfo:
        """Return the zone of the time axis for a reader in *zone*."""
        return zone

    def as_json(self, zone: tzinfo = UTC) -> dict[str, Any]:
        """Return the chart as JSON for the browser, with times of *zone*."""
        some = uuid.UUID(int=0)
        runs_url = reverse("run", args=[some]).removesuffix(f"{some}/")  # of each run would take long
        return {
            "interval": RUN,
            "zone": str(zone),
            "metric": self.metric,
            "unit": self.unit,
            "runs": [_run(run, runs_url, zone) for run in self.runs],
            "segments": list(self.segments),
            "boundaries": [_boundary(boundary, zone) for boundary in self.boundaries],
            "stages": [asdict(stage) for stage in self.stages],
            "seconds": {name: _rounded(values) for name, values in self.seconds.items()},
            "totals": _rounded(self.values),
            "forecasts": [_forecast(forecast, zone) for forecast in self.forecasts],
            "pending": self._pending(zone),
            "rates": {name: _rounded(values) for name, values in self.rates.items()},
        }

    def _pending(self, zone: tzinfo) -> dict[str, Any] | None:
        if self.pending is None or self.next_slot is None:
            return None
        return {**_forecast(self.pending, zone), "time": _time(self.next_slot, zone)}


def chart(
    series: Series, chosen: PageRange, current: Segment | None, choice: ChartChoice | None = None
) -> RunChart | IntervalChart:
    """Return the chart of the *chosen* range, by run or by a longer interval.

    *current* is the segment of the next run.
    """
    choice = choice or ChartChoice()
    ended = runs_in(series, chosen)
    most = most_runs(choice.interval)
    start = chosen.start or _first_slot(series) or chosen.end
    # Runs of a long range are not read to find out that they are too many.
    span = chosen.end - start
    interval = interval_for(span, has_more_runs=False, chosen=choice.interval)
    runs: list[Run] = []
    if interval == RUN:
        columns = ("id", "slot", "state", "stage", "reason")
        runs = list(ended.order_by("-slot").only(*columns)[: most + 1])
        interval = interval_for(span, has_more_runs=len(runs) > most, chosen=choice.interval)
    if interval != RUN:
        return interval_chart(series, start, chosen.end, interval, choice.metric)
    return _run_chart(series, runs[:most][::-1], len(runs) > most, current, choice.metric)


def runs_in(series: Series, chosen: PageRange) -> RunQuerySet:
    """Return the ended runs of *series* in the *chosen* range, in no order."""
    ended = Run.objects.filter(series=series, state__in=ENDED, slot__lt=chosen.end).order_by()
    return ended if chosen.start is None else ended.filter(slot__gte=chosen.start)


def _run_chart(
    series: Series, runs: Sequence[Run], cut: bool, current: Segment | None, metric: str
) -> RunChart:
    metrics = {
        pk: (name, unit, segment)
        for pk, name, unit, segment in Metric.objects.filter(segment__series=series).values_list(
            "pk", "name", "unit", "segment"
        )
    }
    units = {name: unit for name, unit, _ in metrics.values()}
    has_stages = metric == TOTAL
    shown = stage_shades.of_probe(series.probe, stage_shades.measured(units)) if has_stages else []
    rates = sorted(name for name, unit in units.items() if unit == RATE) if has_stages else []
    names = {*(_metric(stage.name) for stage in shown), metric, *rates}
    wanted = {pk: (name, segment) for pk, (name, _, segment) in metrics.items() if name in names}
    values, segments = _values(wanted, runs)
    return RunChart(
        metric=metric,
        unit=units.get(metric, "seconds"),
        runs=runs,
        segments=segments,
        boundaries=_boundaries(runs, segments),
        cut=cut,
        stages=shown,
        seconds={stage.name: _column(values, _metric(stage.name), runs) for stage in shown},
        values=_column(values, metric, runs),
        forecasts=_forecasts(wanted, runs) if has_stages else [],
        pending=_pending(current) if has_stages else None,
        next_slot=Run.objects.filter(series=series).pending().aggregate(Min("slot"))["slot__min"],
        rates={name: _column(values, name, runs) for name in rates if name in values},
    )


def _values(
    wanted: Mapping[int, tuple[str, int]], runs: Sequence[Run]
) -> tuple[dict[str, list[float | None]], list[int | None]]:
    """Return the values of *runs* by metric, and their segments; None for a run without a value.

    *wanted* has the name and the segment of each metric. Arrays take a tenth of the time of models.
    """
    if not runs:
        return {}, []
    slots = np.array([micros(run.slot) for run in runs])
    samples = sample_arrays.read_many(wanted, runs[0].slot, runs[-1].slot)
    at = np.minimum(np.searchsorted(slots, samples["time"]), len(slots) - 1)
    is_of_run = slots[at] == samples["time"]
    segments = np.zeros(len(runs), np.int64)
    columns: dict[str, NDArray[np.float64]] = {}
    for key in np.unique(samples["metric"]).tolist():
        name, segment = wanted[key]
        own = is_of_run & (samples["metric"] == key)
        columns.setdefault(name, np.full(len(runs), np.nan))[at[own]] = samples["value"][own]
        segments[at[own]] = segment
    values = {
        name: [None if math.isnan(value) else value for value in column.tolist()]
        for name, column in columns.items()
    }
    return values, [segment or None for segment in segments.tolist()]


def _first_slot(series: Series) -> datetime | None:
    first: datetime | None = series.runs.ended().aggregate(Min("slot"))["slot__min"]
    return first


def _metric(stage: str) -> str:
    return f"stage.{stage}.seconds"


def _column(
    values: Mapping[str, Sequence[float | None]], name: str, runs: Sequence[Run]
) -> Sequence[float | None]:
    """Return one value per run; None for a run without a value."""
    return values.get(name) or [None] * len(runs)


def _boundaries(runs: Sequence[Run], segments: Sequence[int | None]) -> list[Boundary]:
    measured = [(run, segment) for run, segment in zip(runs, segments, strict=True) if segment is not None]
    crossed = [(old, new, run.slot) for (_, old), (run, new) in pairwise(measured) if old != new]
    by_key = (
        Segment.objects.in_bulk({key for old, new, _ in crossed for key in (old, new)}) if crossed else {}
    )
    return [
        Boundary(time, by_key[new], segment_changes(by_key[old], by_key[new])) for old, new, time in crossed
    ]


def _forecasts(wanted: Mapping[int, tuple[str, int]], runs: Sequence[Run]) -> list[Forecast]:
    """Return the forecasts whose actual values come from *runs*, at most one per run, oldest first."""
    if not runs:
        return []
    totals = [pk for pk, (name, _) in wanted.items() if name == TOTAL]
    issued = _issued().filter(metric__in=totals).select_related("metric")
    scored = issued.scored().filter(truth_time__gte=runs[0].slot, truth_time__lte=runs[-1].slot)
    columns = ("metric__segment", "truth_time", "median", "lower", "upper", "level")
    by_slot = {
        each.truth_time: each for each in scored.only(*columns).order_by("truth_time", "last_known_at")
    }
    return list(by_slot.values())


def _pending(current: Segment | None) -> Forecast | None:
    if current is None:
        return None
    of_segment = _issued().filter(metric__segment=current).select_related("metric")
    newest = of_segment.order_by("-last_known_at", "-pk").first()
    return newest if newest and newest.truth is None else None


def _issued() -> ForecastQuerySet:
    return Forecast.objects.filter(metric__name=TOTAL, method=METHOD, at=None)


def _run(run: Run, runs_url: str, zone: tzinfo) -> dict[str, Any]:
    return {
        "slot": _time(run.slot, zone),
        "utc": f"{run.slot:%Y-%m-%d %H:%M:%S} UTC",
        "state": run.state,
        "words": outcome_label(run.state),
        "stage": run.stage,
        "reason": run.reason[:_REASON_CHARACTERS],
        "url": f"{runs_url}{run.pk}/",
    }


def _boundary(boundary: Boundary, zone: tzinfo) -> dict[str, Any]:
    return {
        "time": _time(boundary.time, zone),
        "number": boundary.segment.number,
        "words": ", ".join(map(str, boundary.changes)),
    }


def _forecast(forecast: Forecast, zone: tzinfo) -> dict[str, Any]:
    return {
        "segment": forecast.metric.segment_id,
        "time": _time(forecast.truth_time, zone) if forecast.truth_time else None,
        "median": round(forecast.median, 6),
        "lower": round(forecast.lower, 6),
        "upper": round(forecast.upper, 6),
        "level": forecast.level,
    }


def _time(time: datetime, zone: tzinfo) -> str:
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M:%S.%f}"


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 6) for value in values]
