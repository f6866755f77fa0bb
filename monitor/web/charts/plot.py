"""Plots as SVG that fill any box: the server does not know how wide the screen is.

Paths have coordinates of ``GRAIN``-ths of the width and ``Y_GRAIN``-ths of the height. They are stretched,
strokes keep their width; texts and symbols are placed by shares and are not stretched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.web.charts.time_scale import TimeScale
    from monitor.web.charts.value_scale import ValueScale

    Floats = NDArray[np.float64]

GRAIN, Y_GRAIN = 10_000, 2000
_LEAST_PIXELS, _LETTER_PIXELS = 300, 6.2  # of the plot on a phone; of a letter


@dataclass(frozen=True)
class Note:
    """A text at the top of a plot, on one side of *position*; *texts*: the longest first."""

    position: float
    texts: Sequence[str]
    kind: str
    is_left: bool = False


def plot(
    x: TimeScale, axes: Sequence[tuple[ValueScale, str]], shapes: SafeString, symbols: SafeString
) -> SafeString:
    """Return *shapes* (paths) and *symbols* (placed by shares) in a frame with axes; *axes* have titles."""
    grid = joined(_levels(scale, is_only=len(axes) == 1) for scale, _ in axes)
    titles = format_html_join(
        "", '<span class="y-title y-{}">{}</span>', enumerate(title for _, title in axes)
    )
    return format_html(
        '<div class="drawn" aria-hidden="true">{}<span class="x-title">Time ({})</span><svg class="area">{}'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none">{}</svg>{}{}</svg></div>',
        titles, x.zone, grid, GRAIN, Y_GRAIN, shapes, _time_ticks(x), symbols,
    )  # fmt: skip


def _levels(scale: ValueScale, *, is_only: bool) -> SafeString:
    return format_html_join(
        "",
        '<line class="grid" x2="100%" y1="{0}" y2="{0}"/><text class="level" x="-8" y="{0}">{1}</text>',
        ((percent(at), label) for at, label in scale.ticks(*(() if is_only else (_few(scale),)))),
    )


def _few(scale: ValueScale) -> int:
    """Return how many ticks fit: of one of several axes, by its height."""
    return max(2, round(6 * (scale.bottom - scale.top)))


def _time_ticks(x: TimeScale) -> SafeString:
    return format_html_join(
        "",
        '<line class="grid tick-mark" x1="{0}" x2="{0}" y1="100%" y2="100%"/>'
        '<text class="tick" x="{0}" y="100%"><tspan dy="1.4em">{1}</tspan>'
        '<tspan x="{0}" dy="1.25em">{2}</tspan></text>',
        ((percent(at), label, beside) for at, label, beside in x.ticks()),
    )


def percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def path(kind: str, commands: str) -> SafeString:
    return format_html('<path class="{}" d="{}"/>', kind, commands) if commands else SafeString("")


def grains(shares: Floats, grain: int = GRAIN) -> list[int]:
    """Return coordinates of a path."""
    whole: list[int] = np.rint(np.clip(shares, -1.0, 2.0) * grain).astype(int).tolist()
    return whole


def line(x: Floats, y: Floats) -> str:
    """Return the commands of a line through points; it is interrupted where *y* is NaN."""
    commands, before = [], None
    heights = grains(np.nan_to_num(y), Y_GRAIN)
    for at, height, is_missing in zip(grains(x), heights, np.isnan(y).tolist(), strict=True):
        if before and not is_missing:
            commands.append(f"l{at - before[0]} {height - before[1]}")
        elif not is_missing:
            commands.append(f"M{at} {height}")
        before = None if is_missing else (at, height)
    return "".join(commands)


def band(x: Floats, upper: Floats, lower: Floats) -> str:
    """Return the commands of the area between two lines."""
    return f"{line(x, upper)}L{line(x[::-1], lower[::-1])[1:]}z" if len(x) else ""


def bars(left: Floats, right: Floats, top: Floats, base: Floats) -> str:
    """Return the commands of bars; one without a height is left out."""
    edges = zip(grains(left), grains(right), grains(top, Y_GRAIN), grains(base, Y_GRAIN), strict=True)
    return _subpaths((a, c, f"h{b - a}v{d - c}h{a - b}z") for a, b, c, d in edges if d > c)


def dots(x: Floats, y: Floats) -> str:
    """Return the commands of dots: their size is the width of the stroke."""
    return _subpaths((a, b, "h0z") for a, b in zip(grains(x), grains(y, Y_GRAIN), strict=True))


def _subpaths(shapes: Iterable[tuple[int, int, str]]) -> str:
    """Return closed *shapes* (x, y, commands), each placed relative to the one before: half the bytes."""
    commands, x_before, y_before = [], 0, 0
    for x, y, shape in shapes:
        commands.append(f"m{x - x_before} {y - y_before}{shape}")
        x_before, y_before = x, y
    return "".join(commands)


def verticals(x: Floats, top: float = 0.0, bottom: float = 1.0) -> str:
    return "".join(f"M{at} {round(top * Y_GRAIN)}V{round(bottom * Y_GRAIN)}" for at in grains(x))


def glyphs(kind: str, glyph: str, x: Floats, y: Floats) -> SafeString:
    """Place *glyph* at points: one text that lists its places."""
    if not len(x):
        return SafeString("")
    places = (" ".join(map(percent, shares)) for shares in (x.tolist(), y.tolist()))
    return format_html('<text class="glyph {}" x="{}" y="{}">{}</text>', kind, *places, glyph * len(x))


def notes(placed: Iterable[Note]) -> SafeString:
    """Return those *placed* notes that are not printed over another, even on a phone."""
    drawn, taken = [], list[tuple[float, float]]()
    for note in placed:
        for text in note.texts:
            width = (len(text) + 2) * _LETTER_PIXELS / _LEAST_PIXELS
            first = note.position - width if note.is_left else note.position
            fits = first >= -0.02 and first + width <= 1.02
            if fits and all(first >= end or first + width <= start for start, end in taken):
                taken.append((first, first + width))
                side = "left" if note.is_left else "right"
                drawn.append((f"note-{note.kind} {side}", percent(note.position), text))
                break
    return format_html_join("", '<text class="{}" x="{}" y="0">{}</text>', drawn)


def joined(parts: Iterable[SafeString]) -> SafeString:
    return mark_safe("".join(parts))  # noqa: S308  # each part is safe
