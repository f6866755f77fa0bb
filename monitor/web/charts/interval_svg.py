"""The chart of a series by interval, as SVG: median, 10th to 90th percentile, extremes, failed share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from django.utils.safestring import SafeString

from monitor.web.charts import plot
from monitor.web.charts.chart_choice import LENGTHS, LOGARITHMIC, TOTAL
from monitor.web.charts.event_marks import event_marks
from monitor.web.charts.time_scale import TimeScale
from monitor.web.charts.value_scale import ValueScale

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from numpy.typing import NDArray

    from monitor.depot.rollups.combine import Bands
    from monitor.web.charts.annotations import Annotation
    from monitor.web.charts.interval_chart import IntervalChart

    Floats = NDArray[np.float64]

_VALUES_BOTTOM, _FAILED_TOP = 0.76, 0.85  # of the height
_BAR = 0.92  # of an interval
_GAP = 2.2  # intervals: a longer gap interrupts lines


def interval_plot(
    chart: IntervalChart, scale_name: str, events: Sequence[Annotation], until: datetime, zone: tzinfo
) -> SafeString:
    """Draw the values of each segment by interval, above the share of failed runs."""
    if not chart.has_values:
        return SafeString("")
    length = LENGTHS[chart.interval].total_seconds()  # type: ignore[index]  # of its intervals
    starts = [_starts(part.bands) for part in chart.segments]
    counted = np.array([start.timestamp() for start in chart.counts])
    times = np.unique(np.concatenate([*starts, counted]))
    x = TimeScale(times[0] - length, times[-1] + 2 * length, zone=chart.axis_zone(zone))
    y = _value_scale(chart, scale_name)
    failed_scale, failed = _failed(chart, x, counted, length)
    ranges, symbols = event_marks(events, x, times[0], times[-1] + length, until)
    shapes = [ranges, *(() if y.is_log else _stage_means(chart, x, y, length))]
    for part, own in zip(chart.segments, starts, strict=True):
        breaks = np.flatnonzero(np.diff(own) > _GAP * length) + 1
        for places in np.split(np.arange(len(own)), breaks):
            shapes += _bands(part.bands, places, x.positions(own[places] + length / 2), y)
    title = f"{'Duration' if chart.metric == TOTAL else chart.metric} ({y.name})"
    return plot.plot(
        x, [(y, title), (failed_scale, "Failed (%)")], plot.joined([*shapes, failed]), symbols
    )  # fmt: skip


def _starts(bands: Bands) -> Floats:
    seconds: Floats = np.asarray(bands.start) / 1e6
    return seconds


def _value_scale(chart: IntervalChart, scale_name: str) -> ValueScale:
    """Return the axis: to the highest value, unless that would squeeze the band."""
    quantiles = np.concatenate([part.bands.quantiles for part in chart.segments] or [np.empty((0, 3))])
    highest = np.concatenate([part.bands.max for part in chart.segments] or [np.empty(0)])
    lowest = np.concatenate([part.bands.min for part in chart.segments] or [np.empty(0)])
    if scale_name == LOGARITHMIC:
        return ValueScale.logarithmic(chart.unit, np.concatenate([lowest, highest]), bottom=_VALUES_BOTTOM)
    tallest = float(quantiles[:, 2].max(initial=0.0))
    stacked = _stacked(chart)[-1].max(initial=0.0)
    needed = float(max(highest.max(initial=0.0), stacked))
    least = float(lowest.min(initial=0.0))
    return ValueScale.from_zero(chart.unit, tallest, needed, lowest=least, bottom=_VALUES_BOTTOM)


def _measured(chart: IntervalChart) -> list[datetime]:
    """Return the starts of the intervals with means of stages."""
    return sorted({start for values in chart.seconds.values() for start in values})


def _stacked(chart: IntervalChart) -> Floats:
    """Return the upper ends of the bars of the stages of each interval, below a row of zeros."""
    starts = _measured(chart)
    rows = [[chart.seconds.get(stage.name, {}).get(start, 0.0) for start in starts] for stage in chart.stages]
    ends: Floats = np.cumsum(np.array([[0.0] * len(starts), *rows]), axis=0)
    return ends


def _bands(bands: Bands, places: NDArray[np.int64], x: Floats, y: ValueScale) -> Iterator[SafeString]:
    lower, median, upper = (y.positions(column) for column in bands.quantiles[places].T)
    for extreme in (bands.min, bands.max):
        yield plot.path("extreme", plot.line(x, y.positions(np.asarray(extreme)[places])))
    if len(places) == 1:  # an error bar
        yield plot.path("percentile-bar", plot.verticals(x, float(upper[0]), float(lower[0])))
        yield plot.path("value-dots", plot.dots(x, median))
        return
    yield plot.path("percentiles", plot.band(x, upper, lower))
    yield plot.path("percentile-edge", plot.line(x, upper) + plot.line(x, lower))
    yield plot.path("line", plot.line(x, median))


def _stage_means(chart: IntervalChart, x: TimeScale, y: ValueScale, length: float) -> Iterator[SafeString]:
    """Yield the means of the stages of each interval, stacked."""
    starts = np.array([start.timestamp() for start in _measured(chart)])
    left, right = _edges(x, starts, length)
    for stage, (base, top) in zip(chart.stages, pairwise(y.positions(_stacked(chart))), strict=True):
        bars = plot.bars(left, right, top, base)
        yield plot.path(f"bar-of-stage mean c-{stage.category}-{stage.shade}", bars)


def _edges(x: TimeScale, starts: Floats, length: float) -> tuple[Floats, Floats]:
    margin = length * (1 - _BAR) / 2
    return x.positions(starts + margin), x.positions(starts + length - margin)


def _failed(
    chart: IntervalChart, x: TimeScale, starts: Floats, length: float
) -> tuple[ValueScale, SafeString]:
    """Return the axis and the bars of the share of failed runs, in percent."""
    shares = np.array([100 * (counts.share or 0.0) for counts in chart.counts.values()])
    most = float(shares.max(initial=0.0)) or 10.0
    y = ValueScale.from_zero("percent", most, top=_FAILED_TOP)
    bars = plot.bars(*_edges(x, starts, length), y.positions(shares), y.positions(np.zeros(len(shares))))
    return y, plot.path("failed-share", bars)
