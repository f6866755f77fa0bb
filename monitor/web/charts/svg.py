"""Small charts as SVG, drawn by the server: they need no JavaScript."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from monitor.models.run import State
from monitor.runs.ledger.attribution import Fault

_STEP, _HEIGHT = 4, 14
# The stroke of a run in a trend, by fault: class and vertical middle; the style sheet sets the height.
# Height and position differ, not only the colour: short = passed, full = failed here, hanging = failed
# elsewhere.
_STROKES = {
    Fault.HERE: ("here", 7.0),
    Fault.SOMEWHERE: ("somewhere", 7.0),
    Fault.ELSEWHERE: ("elsewhere", 2.5),
    Fault.MONITOR: ("ours", 9.5),
}
_PASSED, _NOT_RUN = ("passed", 11.5), ("none", 13.0)


@lru_cache(maxsize=4096)
def trend(runs: tuple[tuple[str, Fault], ...]) -> SafeString:
    """Draw a stroke for every run, oldest first, or nothing; equal neighbours form one dashed path."""
    if not runs:
        return SafeString("")
    paths: dict[str, str] = {}
    position = 0
    for (kind, middle), group in groupby(runs, key=_stroke):
        count = len(list(group))
        paths[kind] = f"{paths.get(kind, '')}M{position * _STEP} {middle:g}h{count * _STEP - 1}"
        position += count
    drawn = "".join(f'<path class="t-{kind}" d="{path}"/>' for kind, path in paths.items())
    size = f'width="{position * _STEP}" height="{_HEIGHT}"'
    # Safe: consists of numbers and constants.
    return mark_safe(f'<svg class="trend" {size} aria-hidden="true">{drawn}</svg>')  # noqa: S308


def _stroke(run: tuple[str, Fault]) -> tuple[str, float]:
    state, fault = run
    return _PASSED if state == State.PASSED else _STROKES.get(fault, _NOT_RUN)


def sparkline(values: Sequence[float], label: str = "", *, width: int = 160, height: int = 24) -> SafeString:
    """Draw a line through *values*, oldest first, with a dot at the newest value.

    With fewer than two values, draw nothing. Of more values than pixels, the extremes are kept. *label*
    describes the line to screen readers; without it, they skip the line.
    """
    if len(values) < 2:
        return SafeString("")
    values = extremes(values, width)
    low, high = min(values), max(values)
    scale = (height - 4) / (high - low) if high > low else 0.0
    step = (width - 4) / (len(values) - 1)
    points = [(2 + i * step, height - 2 - (value - low) * scale) for i, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return format_html(
        '<svg class="sparkline" viewBox="0 0 {w} {h}" width="{w}" height="{h}" {described}>'
        '<polyline points="{line}"/><circle cx="{x}" cy="{y}" r="2"/></svg>',
        w=width, h=height, line=line, x=f"{x:.1f}", y=f"{y:.1f}", described=_described(label),
    )  # fmt: skip


def extremes(values: Sequence[float], at_most: int) -> Sequence[float]:
    """Return *values*, or the lowest and the highest of each of equal groups, in order, and the newest.

    The result has at most *at_most* values, of at least three.
    """
    if len(values) <= at_most:
        return values
    groups = (at_most - 1) // 2
    kept: list[float] = []
    for number in range(groups):
        group = range(number * len(values) // groups, (number + 1) * len(values) // groups)
        ends = {min(group, key=values.__getitem__), max(group, key=values.__getitem__)}
        kept += [values[position] for position in sorted(ends)]
    return [*kept, values[-1]]


def _described(label: str) -> SafeString:
    return format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')


def hourly(means: Sequence[float], *, height: int = 24, hour_width: int = 5) -> SafeString:
    """Draw a line through hourly *means*, oldest first, interrupted at NaN.

    A single hour between two missing hours is a dot.
    """
    present = [mean for mean in means if not math.isnan(mean)]
    if not present:
        return SafeString("")
    low, high = min(present), max(present)
    scale, base = (height - 4) / (high - low) if high > low else 0.0, height - 2 if high > low else height / 2
    lines, dots = [], []
    for is_missing, group in groupby(enumerate(means), key=lambda hour: math.isnan(hour[1])):
        if not is_missing:
            points = [f"{2 + hour_width * at} {base - (mean - low) * scale:.1f}" for at, mean in group]
            if len(points) == 1:
                dots.append(f"M{points[0]}h.1")
            else:
                lines.append("M" + "L".join(points))
    size = f'width="{hour_width * (len(means) - 1) + 4}" height="{height}"'
    paths = f'<path d="{"".join(lines)}"/><path class="alone" d="{"".join(dots)}"/>'
    return mark_safe(f'<svg class="sparkline" {size} aria-hidden="true">{paths}</svg>')  # noqa: S308  # numbers


_SHARES_WIDTH = 100
_STANDINGS = (
    "unknown",
    "skipped",
    "passed",
    "stale",
    "elsewhere",
    "ours",
    "somewhere",
    "here",
)  # as the overview counts them


def shares(counts: Sequence[int]) -> SafeString:
    """Draw *counts* by standing as one bar; the worst standing comes first."""
    whole, position, drawn = sum(counts) or 1, 0.0, []
    for name, count in reversed(list(zip(_STANDINGS, counts, strict=True))):
        if count:
            width = max(_SHARES_WIDTH * count / whole, 2.0)
            drawn.append(f'<rect class="b-{name}" x="{position:.1f}" width="{width:.1f}" height="6"/>')
            position += width
    box = f'viewBox="0 0 {max(position, 1):.1f} 6" preserveAspectRatio="none"'
    return mark_safe(f'<svg class="shares" {box} aria-hidden="true">{"".join(drawn)}</svg>')  # noqa: S308  # numbers


def failure_strip(
    counts: Sequence[int], starts: Sequence[datetime], most: int, zone: tzinfo = UTC
) -> SafeString:
    """Draw a cell for each interval, darker the more failures it has; *most* failures are darkest.

    A title of each cell with failures gives their number and the start of the interval, *starts*, in *zone*.
    """
    starts = [start.astimezone(zone) for start in starts]
    cells = format_html_join(
        "",
        '<rect class="f-{}" x="{}" y="0" width="9" height="10">{}</rect>',
        (
            (_shade(count, most), position * 10, _cell_title(count, start))
            for position, (count, start) in enumerate(zip(counts, starts, strict=True))
        ),
    )
    busiest = max(range(len(counts)), key=counts.__getitem__)
    label = f"{sum(counts):,} failures, most of them from {starts[busiest]:%Y-%m-%d %H:%M} {zone} on"
    return format_html(
        '<svg class="strip" viewBox="0 0 {} 10" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg>',
        len(counts) * 10 - 1,
        label,
        cells,
    )


def _shade(count: int, most: int) -> int:
    """Return 0 for no failure, else 1 to 4 for each quarter of *most*."""
    return math.ceil(4 * count / most) if most else 0


def _cell_title(count: int, start: datetime) -> SafeString:
    if not count:
        return SafeString("")
    return format_html("<title>{} failed, from {} on</title>", f"{count:,}", f"{start:%Y-%m-%d %H:%M}")
