"""Small drawings made by the server, as SVG: they need no JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from monitor.models.run import State
from monitor.services.blame import Fault

_STEP, _HEIGHT = 4, 14
# How a run stands in a trend: (class, top, bottom). The height says it too, not the colour alone.
_LOW, _MIDDLE, _FULL = (9, 14), (5, 14), (0, 14)


@lru_cache(maxsize=4096)
def trend(runs: tuple[tuple[str, Fault], ...]) -> SafeString:
    """A strip with a stroke for every run, oldest first.

    Low where it passed, full height where it failed here, a stub from above where it failed elsewhere, a dot
    where it was not run.
    """
    strokes: dict[str, list[str]] = {}
    for index, (state, whose) in enumerate(runs):
        kind, top, bottom = _stroke(state, whose)
        strokes.setdefault(kind, []).append(f"M{index * _STEP + 1.5:g} {top}v{bottom - top}")
    paths = "".join(f'<path class="t-{kind}" d="{"".join(lines)}"/>' for kind, lines in strokes.items())
    width = max(len(runs), 1) * _STEP
    # Numbers and our own words only: nothing here came from outside.
    return mark_safe(  # noqa: S308
        f'<svg class="trend" viewBox="0 0 {width} {_HEIGHT}" width="{width}" height="{_HEIGHT}" '
        f'aria-hidden="true">{paths}</svg>'
    )


def _stroke(state: str, whose: Fault) -> tuple[str, float, float]:
    if state == State.PASSED:
        return ("passed", *_LOW)
    if whose == Fault.HERE:
        return ("here", *_FULL)
    if whose == Fault.SOMEWHERE:
        return ("somewhere", *_FULL)
    if whose == Fault.OURS:
        return ("ours", *_MIDDLE)
    if whose == Fault.ELSEWHERE:
        return ("elsewhere", 0, 5)
    return ("none", 12, 14)


def sparkline(values: Sequence[float], *, width: int = 160, height: int = 24) -> SafeString:
    """A line through *values*, oldest first, with a dot on the newest; empty for fewer than two."""
    if len(values) < 2:
        return SafeString("")
    low, high = min(values), max(values)
    scale = (height - 4) / (high - low) if high > low else 0.0
    step = (width - 4) / (len(values) - 1)
    points = [(2 + i * step, height - 2 - (value - low) * scale) for i, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return format_html(
        '<svg class="sparkline" viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-hidden="true">'
        '<polyline points="{line}"/><circle cx="{x}" cy="{y}" r="2"/></svg>',
        w=width, h=height, line=line, x=f"{x:.1f}", y=f"{y:.1f}",
    )  # fmt: skip
