"""The charts of a series by run, as SVG: what a reader sees before and without the interactive chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from django.utils.safestring import SafeString

from monitor.web.charts import plot
from monitor.web.charts.chart_choice import LOGARITHMIC, TOTAL
from monitor.web.charts.event_marks import event_marks
from monitor.web.charts.plot import Note
from monitor.web.charts.state_glyphs import STATE_GLYPHS
from monitor.web.charts.time_scale import TimeScale
from monitor.web.charts.value_scale import ValueScale

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from numpy.typing import NDArray

    from monitor.web.charts.annotations import Annotation
    from monitor.web.charts.series_chart import RunChart

    Floats = NDArray[np.float64]

_BAR_OF_GAP = 0.8
_MOST_DOTS = 300  # of a line: with more, only the line is drawn
_MANY_RUNS = 150  # with more, bars have no edges and dots are small


@dataclass(frozen=True)
class RunColumns:
    """The values of a chart as arrays; NaN is a run without the value."""

    chart: RunChart
    scale_name: str
    zone: tzinfo

    @cached_property
    def times(self) -> Floats:
        return np.array([run.slot.timestamp() for run in self.chart.runs])

    @cached_property
    def x(self) -> TimeScale:
        return TimeScale.of_runs(self.times, self.zone)

    @cached_property
    def totals(self) -> Floats:
        return _floats(self.chart.values)

    @cached_property
    def stages(self) -> Floats:
        """The seconds of each stage, a row each."""
        rows = [_floats(self.chart.seconds[stage.name]) for stage in self.chart.stages]
        return np.array(rows).reshape(len(rows), len(self.chart.runs))

    @cached_property
    def heights(self) -> Floats:
        """The larger of the total and the sum of the stages of each run; 0 without both."""
        heights: Floats = np.fmax(np.nan_to_num(self.totals), np.nansum(self.stages, axis=0))
        return heights

    @cached_property
    def y(self) -> ValueScale:
        chart = self.chart
        forecasts = [*chart.forecasts, *([chart.pending] if chart.pending and chart.next_slot else [])]
        if self.scale_name == LOGARITHMIC:
            values = [self.heights, np.array([each.upper for each in forecasts])]
            return ValueScale.logarithmic(chart.unit, np.concatenate(values))
        needed = max((each.upper for each in forecasts), default=0.0)
        lowest = float(np.nanmin(self.totals, initial=0.0))
        return ValueScale.from_zero(chart.unit, float(self.heights.max(initial=0.0)), needed, lowest=lowest)

    @property
    def density(self) -> str:
        """The class of marks of runs, a suffix of others."""
        return " many" if len(self.chart.runs) > _MANY_RUNS else ""

    @property
    def title(self) -> str:
        return f"{'Duration' if self.chart.metric == TOTAL else self.chart.metric} ({self.y.name})"


def run_plot(
    chart: RunChart, scale_name: str, events: Sequence[Annotation], until: datetime, zone: tzinfo
) -> SafeString:
    """Draw each run: its stages stacked, its total, the forecasts as issued, and what did not pass."""
    if not chart.runs:
        return SafeString("")
    columns = RunColumns(chart, scale_name, zone)
    x, times = columns.x, columns.times
    ranges, event_symbols = event_marks(events, x, times[0], times[-1], until)
    cuts, cut_notes = _cuts(columns)
    next_run = _next_run(columns)
    shapes = [ranges, *_stage_bars(columns), *_forecasts(columns), *_values(columns), *next_run, cuts]
    symbols = [
        *_failures(columns),
        event_symbols,
        plot.notes(cut_notes),
        plot.notes(_boundary_notes(columns)),
    ]
    return plot.plot(x, [(columns.y, columns.title)], plot.joined(shapes), plot.joined(symbols))


def rate_plot(chart: RunChart, zone: tzinfo) -> SafeString:
    """Draw the transfer rates of each run, a line each."""
    if not chart.runs or not chart.rates:
        return SafeString("")
    columns = RunColumns(chart, "", zone)
    rates = {name: _floats(values) for name, values in chart.rates.items()}
    largest = max(
        (float(np.nanmax(values)) for values in rates.values() if not np.isnan(values).all()), default=1
    )
    y = ValueScale.from_zero("bytes_per_second", largest)
    shapes = []
    for (number, _), values in zip(chart.rate_lines, rates.values(), strict=True):
        shapes += _lines(columns, values, y, f"line l-{number}", f"value-dots l-{number}")
    cuts, cut_notes = _cuts(columns)
    return plot.plot(
        columns.x, [(y, f"Rate ({y.name})")], plot.joined([*shapes, cuts]), plot.notes(cut_notes)
    )  # fmt: skip


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=float)


def _stage_bars(columns: RunColumns) -> Iterator[SafeString]:
    if columns.y.is_log or not len(columns.stages):
        return  # bars that begin at zero have no place on a logarithmic axis
    reached = ~np.isnan(columns.stages).all(axis=0)
    times, seconds = columns.times[reached], np.nan_to_num(columns.stages[:, reached])
    half = _bar_widths(times) / 2
    left, right = columns.x.positions(times - half), columns.x.positions(times + half)
    tops = np.cumsum(seconds, axis=0)
    for stage, top, own in zip(columns.chart.stages, tops, seconds, strict=True):
        edges = columns.y.positions(top), columns.y.positions(top - own)
        yield plot.path(
            f"bar-of-stage c-{stage.category}-{stage.shade}{columns.density}", plot.bars(left, right, *edges)
        )


def _bar_widths(times: Floats) -> Floats:
    """Return the width of each bar in seconds: most of the usual gap, without overlapping its neighbours."""
    if len(times) < 2:
        return np.full(len(times), 60.0)
    gaps = np.diff(times)
    usual = float(np.median(gaps))
    least = np.minimum(usual, np.minimum(np.append(usual, gaps), np.append(gaps, usual)))
    widths: Floats = np.maximum(least * _BAR_OF_GAP, usual / 20)
    return widths


def _forecasts(columns: RunColumns) -> Iterator[SafeString]:
    for _, of_segment in groupby(columns.chart.forecasts, key=lambda each: each.metric.segment_id):
        rows = [(f.truth_time.timestamp(), f.lower, f.median, f.upper) for f in of_segment if f.truth_time]
        times, *values = np.array(rows).reshape(-1, 4).T
        x = columns.x.positions(times)
        lower, median, upper = map(columns.y.positions, values)
        yield plot.path("forecast-band", plot.band(x, upper, lower))
        yield plot.path("forecast-edge", plot.line(x, upper) + plot.line(x, lower))
        yield plot.path("forecast-line", plot.line(x, median))


def _next_run(columns: RunColumns) -> Iterator[SafeString]:
    """Draw the forecast of the next run as a dot with its interval."""
    forecast, slot = columns.chart.pending, columns.chart.next_slot
    if forecast is None or slot is None:
        return
    at = columns.x.position(slot.timestamp())
    if at > 1:
        return  # its run is further away than the newest runs
    top, middle, bottom = columns.y.positions(np.array([forecast.upper, forecast.median, forecast.lower]))
    yield plot.path("next-run-interval", plot.verticals(np.array([at]), top, bottom))
    yield from _ringed("next", np.array([at]), np.array([middle]))


def _ringed(kind: str, x: Floats, y: Floats) -> list[SafeString]:
    """Return dots with an edge: a larger dot below a smaller one."""
    commands = plot.dots(x, y)
    return [plot.path(f"ring {kind}", commands), plot.path(f"core {kind}", commands)]


def _values(columns: RunColumns) -> list[SafeString]:
    """Return the values of the metric: of a total a dot on top of its stages, of another metric a line."""
    if not columns.chart.stages:
        return _lines(columns, columns.totals, columns.y, "line", "value-dots")
    present = ~np.isnan(columns.totals)
    x = columns.x.positions(columns.times[present])
    return _ringed(f"total{columns.density}", x, columns.y.positions(columns.totals[present]))


def _lines(
    columns: RunColumns, values: Floats, y: ValueScale, kind: str, kind_of_dots: str
) -> list[SafeString]:
    """Return a line through the *values* of each segment, and a dot at each value if there is room."""
    x, heights = columns.x.positions(columns.times), y.positions(values)
    commands, last = [], None
    has_segment = [at for at, segment in enumerate(columns.chart.segments) if segment is not None]
    for _, places in groupby(has_segment, key=columns.chart.segments.__getitem__):
        own = list(places)
        commands.append(plot.line(x[own], heights[own]))
        last = own[-1]
    present = ~np.isnan(heights)
    dots = plot.dots(x[present], heights[present]) if last is not None and present.sum() <= _MOST_DOTS else ""
    return [plot.path(kind, "".join(commands)), plot.path(kind_of_dots, dots)]


def _failures(columns: RunColumns) -> Iterator[SafeString]:
    """Yield the symbols of runs that did not pass, on top of the stages that they completed."""
    states = np.array([run.state for run in columns.chart.runs])
    x, y = columns.x.positions(columns.times), columns.y.positions(columns.heights)
    for state, glyph in STATE_GLYPHS.items():
        own = states == state
        yield plot.glyphs(f"s-{state}", glyph, x[own], y[own])


def _cuts(columns: RunColumns) -> tuple[SafeString, list[Note]]:
    """Return lines where pauses were cut out and segments begin, and notes about the pauses."""
    ends = np.array([end for _, end in columns.x.pauses])
    marks = [plot.path("cut", plot.verticals(columns.x.positions(ends)))]
    crossed = np.array([boundary.time.timestamp() for boundary in columns.chart.boundaries])
    marks.append(plot.path("boundary", plot.verticals(columns.x.positions(_before(crossed, columns.times)))))
    pauses = sorted(columns.x.pauses, key=lambda pause: pause[0] - pause[1])  # the longest first
    return plot.joined(marks), [
        Note(at, [f"{_span(end - start)} without runs", _span(end - start)], "cut", is_left=at > 0.5)
        for start, end in pauses
        for at in [columns.x.position(end)]
    ]


def _before(starts: Floats, times: Floats) -> Floats:
    """Return places in the middle between a run that begins a segment and the run before it."""
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 60.0
    gaps = [min(usual, start - times[np.searchsorted(times, start) - 1]) for start in starts]
    return starts - np.array(gaps, dtype=float) / 2


def _boundary_notes(columns: RunColumns) -> list[Note]:
    boundaries = columns.chart.boundaries
    starts = _before(np.array([each.time.timestamp() for each in boundaries]), columns.times)
    return [
        Note(position, [f"segment {each.segment.number}", str(each.segment.number)], "boundary")
        for each, position in zip(boundaries, columns.x.positions(starts).tolist(), strict=True)
    ]


def _span(seconds: float) -> str:
    hours = seconds / 3600
    if hours >= 48:
        return f"{hours / 24:.0f} d"
    return f"{hours:.0f} h" if hours >= 2 else f"{hours * 60:.0f} min"
