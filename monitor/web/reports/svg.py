"""Charts of a report as SVG, for screens and for the printer.

Colours are attributes, as programs that make PDF do not apply a page's style sheet to SVG; the classes let
the style sheet replace them on dark screens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    from monitor.analysis.performance.sigma_histogram import SigmaHistogram
    from monitor.web.reports.normalised import NormalisedLine

WIDTH = 720
_FONT = 12
_INK, _MUTED, _LINE = "#1a1d21", "#596069", "#d6d7d2"
_FILLS = {"here": "#0d766e", "published": "#c9ced6", "other": "#c2410c"}
_BAR, _GAP = 13, 9
_LABELS = 190  # width of the labels of bars
_LONGEST = 32  # characters of such a label
_PANEL = 170  # height of a histogram, axis included
_PLOT = 260  # height of lines, axis included
_LEFT, _BOTTOM, _TOP = 40, 44, 26
_HEAD = 36  # height of the title and the subtitle of a histogram
_MOST_TICKS = 8
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class BarColumn:
    """A bar of each row: its legend, the kind of its colour, and its value in each row; None: no bar."""

    legend: str
    kind: str
    values: Sequence[float | None]
    texts: Sequence[str]  # beside the bars


def bars(labels: Sequence[str], columns: Sequence[BarColumn], description: str) -> SafeString:
    """Draw horizontal bars: a row for each of *labels*, in it a bar for each of *columns*.

    Bars begin at 0; a negative one extends to the left of it.
    """
    drawn = [value for column in columns for value in column.values if value is not None]
    low, high = min([0.0, *drawn]), max([0.0, *drawn])
    span = (high - low) or 1.0
    room = WIDTH - _LABELS - 70  # the texts are to the right

    def across(value: float) -> float:
        return _LABELS + (value - low) / span * room

    row_height = len(columns) * _BAR + _GAP
    parts = [_legend([(column.legend, column.kind) for column in columns], 12)] if len(columns) > 1 else []
    top = 30.0 if len(columns) > 1 else 6.0
    for row, label in enumerate(labels):
        y = top + row * row_height
        middle = y + len(columns) * _BAR / 2 + 4
        parts.append(_text(_LABELS - 8, middle, _shortened(label), anchor="end", title=label))
        for number, column in enumerate(columns):
            value = column.values[row]
            at = y + number * _BAR
            if value is not None:
                parts.append(_bar(across(min(value, 0)), at, abs(value) / span * room, column.kind))
            place = across(max(value or 0.0, 0.0)) + 5
            parts.append(_text(place, at + _BAR - 3, column.texts[row], size=11, kind="muted"))
    parts.append(_rule(across(0), top - 3, across(0), top + len(labels) * row_height - _GAP + 3, "muted"))
    return _svg(top + len(labels) * row_height, parts, description)


def histograms(panels: Sequence[tuple[str, str, SigmaHistogram]], description: str) -> SafeString:
    """Draw histograms in standard deviations side by side, with the same axis.

    *panels* has the title, the subtitle and the values of each.
    """
    classes = [found for *_, histogram in panels for found in histogram.classes]
    bounds = [edge for found in classes for edge in (found.lower, found.upper) if edge is not None]
    low, high = math.floor(min([-2.0, *bounds])) - 0.5, math.ceil(max([2.0, *bounds])) + 0.5
    width = (WIDTH - 10) / len(panels)
    parts: list[SafeString] = []
    for number, (title, subtitle, histogram) in enumerate(panels):
        ends = (number * width + _LEFT, (number + 1) * width - 6)
        parts.append(_text(ends[0], 12, title, weight="bold"))
        parts.append(_text(ends[0], 27, subtitle, size=11, kind="muted"))
        parts += _panel(histogram, ends, (low, high))
    return _svg(_PANEL + _HEAD, parts, description)


def _panel(
    histogram: SigmaHistogram, ends: tuple[float, float], sigmas: tuple[float, float]
) -> list[SafeString]:
    """Draw one histogram between the horizontal positions *ends*, for the range *sigmas*."""
    most = max((found.count for found in histogram.classes), default=1)
    bottom, top = _HEAD + _PANEL - _BOTTOM, _HEAD + 4.0
    parts: list[SafeString] = []

    def across(sigma: float) -> float:
        return ends[0] + (sigma - sigmas[0]) / (sigmas[1] - sigmas[0]) * (ends[1] - ends[0])

    def height(count: float) -> float:
        return bottom - count / most * (bottom - top)

    for tick in _whole_ticks(most):
        parts.append(_rule(ends[0], height(tick), ends[1], height(tick), "line"))
        parts.append(_text(ends[0] - 4, height(tick) + 4, f"{tick:g}", anchor="end", size=11, kind="muted"))
    for found in histogram.classes:
        lower = found.upper - 0.5 if found.lower is None and found.upper is not None else found.lower
        if lower is not None and found.count:
            left, right = across(lower) + 0.5, across(lower + 0.5) - 0.5
            parts.append(_bar(left, height(found.count), right - left, "here", bottom - height(found.count)))
    parts.append(_rule(ends[0], bottom, ends[1], bottom, "muted"))
    for sigma in range(math.ceil(sigmas[0]), math.floor(sigmas[1]) + 1):
        if sigma % 2 == 0 or sigmas[1] - sigmas[0] < 7:
            label = f"{sigma:+d}" if sigma else "mean"
            parts.append(_text(across(sigma), bottom + 15, label, anchor="middle", size=11, kind="muted"))
    middle = (ends[0] + ends[1]) / 2
    parts.append(_text(middle, bottom + 32, "standard deviations", anchor="middle", size=11, kind="muted"))
    return parts


def lines(drawn: Sequence[tuple[str, NormalisedLine]], description: str) -> SafeString:
    """Draw a line for each pair of (kind of colour, line) over time, in standard deviations from the mean."""
    times = [at for _, line in drawn for at in line.seconds]
    values = [value for _, line in drawn for value in line.sigmas]
    first, last = min(times), max(times)
    low, high = math.floor(min([-1.0, *values])), math.ceil(max([1.0, *values]))
    bottom, top = _TOP + _PLOT - _BOTTOM, _TOP + 8.0

    def across(at: float) -> float:
        return _LEFT + ((at - first) / (last - first) if last > first else 0.5) * (WIDTH - _LEFT - 12)

    def height(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    parts = [
        _legend([(line.series, kind) for kind, line in drawn], 12),
        _text(WIDTH - 12, 12, "standard deviations from the mean", anchor="end", size=11, kind="muted"),
    ]
    for tick in _ticks(low, high):
        parts.append(_rule(_LEFT, height(tick), WIDTH - 12, height(tick), "muted" if tick == 0 else "line"))
        label = f"{tick:+g}" if tick else "mean"
        parts.append(_text(_LEFT - 4, height(tick) + 4, label, anchor="end", size=11, kind="muted"))
    for at, label, anchor in _time_ticks(first, last):
        parts.append(_text(across(at), bottom + 16, label, anchor=anchor, size=11, kind="muted"))
    for kind, line in drawn:
        points = [(across(at), height(value)) for at, value in zip(line.seconds, line.sigmas, strict=True)]
        parts += _line(points, kind)
    parts.append(
        _text(
            (_LEFT + WIDTH) / 2, bottom + 34, "start of the run, UTC", anchor="middle", size=11, kind="muted"
        )
    )
    return _svg(_PLOT + _TOP, parts, description)


def _line(points: Sequence[tuple[float, float]], kind: str) -> list[SafeString]:
    """Draw a line; the line of a probe is dashed, and few points have dots, so that colour is secondary."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = "5 3" if kind == "other" else "none"
    drawn = [
        format_html(
            '<polyline class="k-{}-line" points="{}" fill="none" stroke="{}" stroke-width="1.5"'
            ' stroke-dasharray="{}"/>',
            kind, path, _FILLS[kind], dashes,
        )
    ]  # fmt: skip
    if len(points) <= 120:
        drawn += [
            format_html(
                '<circle class="k-{}" cx="{}" cy="{}" r="2.4" fill="{}"/>',
                kind,
                f"{x:.1f}",
                f"{y:.1f}",
                _FILLS[kind],
            )
            for x, y in points
        ]
    return drawn


def _time_ticks(first: float, last: float) -> Iterable[tuple[float, str, str]]:
    """Yield position, label and anchor of the start, the middle and the end of a time range."""
    form = "%H:%M:%S" if last - first < 86400 else "%Y-%m-%d %H:%M"
    for at, anchor in ((first, "start"), ((first + last) / 2, "middle"), (last, "end")):
        shown = form if anchor != "start" else "%Y-%m-%d %H:%M"
        yield at, f"{datetime.fromtimestamp(at, UTC):{shown}}", anchor


def _ticks(low: float, high: float) -> list[float]:
    """Return round values from *low* to *high*, at most ``_MOST_TICKS`` and a few."""
    step = _step((high - low) / _MOST_TICKS)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _whole_ticks(most: int) -> list[float]:
    step = max(_step(most / 4), 1.0)
    return [number * step for number in range(1, math.floor(most / step) + 1)]


def _step(least: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least *least*."""
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next((factor * power for factor in _STEPS if factor * power >= least), 10 * power)


def _legend(entries: Sequence[tuple[str, str]], y: float) -> SafeString:
    x, parts = float(_LEFT), []
    for text, kind in entries:
        parts += [_bar(x, y - 9, 12, kind, 10), _text(x + 17, y, text)]
        x += 40 + 6.6 * len(text)
    return format_html_join("", "{}", ((part,) for part in parts))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _bar(x: float, y: float, width: float, kind: str, height: float = _BAR - 1) -> SafeString:
    return format_html(
        '<rect class="k-{}" x="{}" y="{}" width="{}" height="{}" fill="{}"/>',
        kind, f"{x:.1f}", f"{y:.1f}", f"{max(width, 0.5):.1f}", f"{max(height, 0.5):.1f}", _FILLS[kind],
    )  # fmt: skip


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> SafeString:
    return format_html(
        '<line class="k-{}" x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="1"/>',
        kind, f"{x1:.1f}", f"{y1:.1f}", f"{x2:.1f}", f"{y2:.1f}", _MUTED if kind == "muted" else _LINE,
    )  # fmt: skip


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = _FONT,
    kind: str = "ink",
    weight: str = "normal",
    title: str = "",
) -> SafeString:
    full = format_html("<title>{}</title>", title) if title and title != text else ""
    return format_html(
        '<text class="t-{}" x="{}" y="{}" text-anchor="{}" font-size="{}" font-weight="{}" fill="{}">'
        "{}{}</text>",
        kind, f"{x:.1f}", f"{y:.1f}", anchor, size, weight, _MUTED if kind == "muted" else _INK, full, text,
    )  # fmt: skip


def _svg(height: float, parts: Iterable[SafeString], description: str) -> SafeString:
    return format_html(
        '<svg viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}"'
        ' font-family="DejaVu Sans, Arial, sans-serif">{}</svg>',
        WIDTH, math.ceil(height), WIDTH, math.ceil(height), description,
        format_html_join("", "{}", ((part,) for part in parts)),
    )  # fmt: skip
