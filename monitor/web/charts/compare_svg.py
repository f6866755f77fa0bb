"""Drawings that compare two series, as SVG: overlay, scatter with regression, correlation at lags."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

import numpy as np
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.core.db.timestamps import moment
from monitor.core.units import humanised
from monitor.depot.samples.m4 import select_points
from monitor.web.charts.axes import number_ticks, time_ticks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.depot.samples.lags import LagCorrelation, Regression, Values

    Floats = NDArray[np.float64]

MOST_POINTS = 800  # of a line: its extremes are kept
MOST_DOTS = 500
_LEFT, _BOTTOM, _TOP = 56, 26, 8
_LAG_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))  # of the axis of lags
_MOST_DEVIATIONS = 6.0  # larger deviations are drawn at the edge


def overlay(lines: Sequence[tuple[str, Values]], zone: tzinfo) -> SafeString:
    """Draw *lines* (name, values) over time, each in standard deviations from its median."""
    width, height = 900, 260
    shown = [(name, *_normalised(values)) for name, values in lines if len(values) > 1]
    if not shown:
        return SafeString("")
    first, last = min(time[0] for _, time, _ in shown), max(time[-1] for _, time, _ in shown)
    low = max(min(value.min() for _, _, value in shown), -_MOST_DEVIATIONS)
    high = min(max(value.max() for _, _, value in shown), _MOST_DEVIATIONS)
    x = _scale(first, last, _LEFT, width - 8)
    y = _scale(low, high, height - _BOTTOM, _TOP)
    paths = format_html_join(
        "",
        '<polyline class="line line-{}" points="{}"/>',
        (
            (number, _points(x(time), y(np.clip(value, low, high))))
            for number, (_, time, value) in enumerate(shown, 1)
        ),
    )
    ticks = [
        (x(np.array([time.timestamp() * 1e6]))[0], label)
        for time, label in time_ticks(moment(first), moment(last), zone)
    ]
    levels = [(y(np.array([tick]))[0], _deviations(tick)) for tick in number_ticks(low, high)]
    label = "Both series over time, each in standard deviations from its median"
    return _frame(width, height, ticks, levels, paths, label)


def scatter(
    x_values: Floats, y_values: Floats, line: Regression | None, x_unit: str, y_unit: str
) -> SafeString:
    """Draw a dot for each pair, at most the newest ``MOST_DOTS``, and the regression line."""
    width, height = 440, 300
    xs, ys = x_values[-MOST_DOTS:], y_values[-MOST_DOTS:]
    if len(xs) < 2:
        return SafeString("")
    x = _scale(xs.min(), xs.max(), _LEFT + 6, width - 14)
    y = _scale(ys.min(), ys.max(), height - _BOTTOM - 6, _TOP + 6)
    dots = format_html_join(
        "",
        '<circle cx="{}" cy="{}" r="2.5"/>',
        ((f"{a:.1f}", f"{b:.1f}") for a, b in zip(x(xs), y(ys), strict=True)),
    )
    fitted = SafeString("")
    if line is not None:
        ends = np.array([xs.min(), xs.max()])
        heights = np.clip(line.intercept + line.slope * ends, ys.min(), ys.max())
        fitted = format_html('<polyline class="fit" points="{}"/>', _points(x(ends), y(heights)))
    ticks = [
        (x(np.array([tick]))[0], humanised(tick, x_unit)) for tick in number_ticks(xs.min(), xs.max(), 4)
    ]
    levels = [
        (y(np.array([tick]))[0], humanised(tick, y_unit)) for tick in number_ticks(ys.min(), ys.max(), 5)
    ]
    label = f"{len(xs)} pairs of values with their regression line"
    return _frame(width, height, ticks, levels, format_html('<g class="dots">{}</g>{}', dots, fitted), label)


def lag_bars(lags: Sequence[LagCorrelation]) -> SafeString:
    """Draw the rank correlation at each lag as a bar from zero, -1 to 1."""
    width, height = 440, 300
    y = _scale(-1.0, 1.0, height - _BOTTOM, _TOP)
    step = (width - _LEFT - 8) / len(lags)
    zero = float(y(np.array([0.0]))[0])
    bars = []
    for number, lag in enumerate(lags):
        coefficient = lag.correlation.spearman
        if coefficient is not None and lag.has_enough_pairs:
            end = float(y(np.array([coefficient.value]))[0])
            bars.append(
                (
                    f"{_LEFT + number * step + 1:.1f}",
                    f"{min(end, zero):.1f}",
                    f"{step - 2:.1f}",
                    f"{max(abs(end - zero), 0.5):.1f}",
                )
            )
    drawn = format_html_join("", '<rect class="lag" x="{}" y="{}" width="{}" height="{}"/>', bars)
    chosen = range(0, len(lags), max(len(lags) // 6, 1))
    ticks = [(_LEFT + (number + 0.5) * step, _lag_label(lags[number].seconds)) for number in chosen]
    levels = [(float(y(np.array([tick]))[0]), _signed(f"{tick:g}")) for tick in (-1, -0.5, 0, 0.5, 1)]
    return _frame(width, height, ticks, levels, drawn, "Rank correlation at each lag")


def _deviations(tick: float) -> str:
    return _signed(f"{tick:+g} \N{GREEK SMALL LETTER SIGMA}") if tick else "median"


def _lag_label(seconds: float) -> str:
    size, unit = next(each for each in _LAG_UNITS if abs(seconds) >= 2 * each[0] or each[0] == 1)
    return _signed(f"{seconds / size:.3g} {unit}") if seconds else "0"


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _normalised(values: Values) -> tuple[NDArray[np.int64], Floats]:
    deviation = values.value.std() or 1.0
    kept = select_points(values.time, values.value, MOST_POINTS)
    return values.time[kept], (values.value[kept] - np.median(values.value)) / deviation


def _scale(low: float, high: float, first: float, last: float):  # type: ignore[no-untyped-def]  # a function of arrays
    width = (high - low) or 1.0
    return lambda values: first + (values - low) / width * (last - first)


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _frame(
    width: int,
    height: int,
    ticks: Sequence[tuple[float, str]],
    levels: Sequence[tuple[float, str]],
    content: SafeString,
    label: str,
) -> SafeString:
    """Return *content* in a frame with *ticks* below and *levels* at the left: positions and labels."""
    grid = format_html_join(
        "",
        '<line class="grid" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
        '<text class="level" x="{3}" y="{4}">{5}</text>',
        ((_LEFT, width - 8, f"{at:.1f}", _LEFT - 6, f"{at + 4:.1f}", text) for at, text in levels),
    )
    marks = format_html_join(
        "",
        '<text class="tick" x="{}" y="{}">{}</text>',
        ((f"{at:.1f}", height - 8, text) for at, text in ticks if _LEFT <= at <= width - 24),
    )
    return format_html(
        '<svg class="plot w-{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}</svg>',
        width, width, height, label, grid, marks, content,
    )  # fmt: skip
