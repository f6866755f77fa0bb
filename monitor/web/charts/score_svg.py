"""Charts of forecast accuracy as SVG, drawn by the server: they need no JavaScript.

Positions are percentages: a chart scales with the page, but its text does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.core.units import percent

_HEIGHT = 150
_TOP, _BOTTOM = 8.0, 92.0  # percent of the height
_LEFT, _RIGHT = 2.0, 98.0  # percent of the width; the style sheet puts the labels of guides to the left of it
_OCTAVES = (0.5, 2.0)  # the least and the greatest range; 2.0: a quarter to four times the forecast


@dataclass(frozen=True)
class Guide:
    """A labelled horizontal line."""

    value: float
    label: str


@dataclass(frozen=True)
class Comparison:
    """An actual value and the interval of its forecast, as ratios to the median forecast."""

    actual: float
    lower: float
    upper: float
    url: str
    label: str


_WIDE = (Guide(2.0, "twice"), Guide(1.0, "as forecast"), Guide(0.5, "half"))
_NARROW = (Guide(1.25, "25 % more"), Guide(1.0, "as forecast"), Guide(0.8, "20 % less"))


def lines(
    columns: Sequence[tuple[str, Sequence[float | None]]],
    guides: Sequence[Guide],
    *,
    low: float,
    high: float,
    label: str,
) -> SafeString:
    """Draw a line for each of *columns*, pairs of (CSS class, values); a line is interrupted at None.

    *guides* are horizontal lines behind it. The vertical scale extends from *low* to *high*. *label*
    describes the chart to screen readers.
    """
    parts: list[SafeString] = []
    for kind, values in columns:
        points = [
            (_across(position, len(values)), _height(value, low, high))
            for position, value in enumerate(values)
            if value is not None
        ]
        parts += _segments(kind, values, low, high) if len(points) > 1 else []
        parts += [format_html('<circle class="{}" cx="{}%" cy="{}%" r="3"/>', kind, *at) for at in points]
    return _guided(parts, [(_height(guide.value, low, high), guide.label) for guide in guides], label)


def ratios(comparisons: Sequence[Comparison], *, label: str) -> SafeString:
    """Draw each of *comparisons*, oldest first: its interval as a bar, its actual value as a dot.

    The scale is logarithmic. *label* describes the chart to screen readers.
    """
    largest = max(
        abs(_octaves(ratio)) for each in comparisons for ratio in (each.actual, each.lower, each.upper)
    )
    octaves = min(max(largest, _OCTAVES[0]), _OCTAVES[1])
    parts = [
        _comparison(each, _across(position, len(comparisons)), octaves)
        for position, each in enumerate(comparisons)
    ]
    guides = _WIDE if octaves > 1 else _NARROW
    heights = [(_by_ratio(guide.value, octaves), guide.label) for guide in guides]
    return _guided(parts, heights, label, role="group")  # it has links


def calibration_curve(points: Sequence[tuple[float, float]], *, label: str) -> SafeString:
    """Draw the share of actual values below each quantile, over its level; on the diagonal they agree."""
    placed = [(_across_share(level), _height(observed, 0.0, 1.0)) for level, observed in points]
    parts = [
        format_html(
            '<line class="guide" x1="{}%" y1="{}%" x2="{}%" y2="{}%"/>',
            *(_across_share(0.0), _height(0.0, 0.0, 1.0), _across_share(1.0), _height(1.0, 0.0, 1.0)),
        ),
        *(
            format_html('<line class="l-1" x1="{}%" y1="{}%" x2="{}%" y2="{}%"/>', *begin, *end)
            for begin, end in pairwise(placed)
        ),
        *(format_html('<circle class="l-1" cx="{}%" cy="{}%" r="3"/>', *place) for place in placed),
    ]
    levels = [(_height(level, 0.0, 1.0), percent(level)) for level in (0.1, 0.5, 0.9)]
    return _guided(parts, levels, label)


def coverage_bar(share: float | None, nominal: float) -> SafeString:
    """Draw *share*, the coverage, as a bar, with a line at the *nominal* level."""
    if share is None:
        return SafeString("")
    return format_html(
        '<svg class="covered" width="6rem" height="8" role="img" aria-label="{}, nominal {}">'
        '<rect class="all" width="100%" height="8"/><rect class="share" width="{}%" height="8"/>'
        '<line x1="{}%" x2="{}%" y1="0" y2="8"/></svg>',
        percent(share), percent(nominal), f"{100 * share:.1f}", f"{100 * nominal:g}", f"{100 * nominal:g}",
    )  # fmt: skip


def _segments(kind: str, values: Sequence[float | None], low: float, high: float) -> Iterator[SafeString]:
    for position, (value, following) in enumerate(pairwise(values)):
        if value is not None and following is not None:
            ends = (_across(position, len(values)), _across(position + 1, len(values)))
            heights = (_height(value, low, high), _height(following, low, high))
            yield format_html('<line class="{}" x1="{}%" x2="{}%" y1="{}%" y2="{}%"/>', kind, *ends, *heights)


def _comparison(shown: Comparison, x: str, octaves: float) -> SafeString:
    kind, radius = ("inside", "2.5") if shown.lower <= shown.actual <= shown.upper else ("outside", "3.5")
    ends = (_by_ratio(shown.lower, octaves), _by_ratio(shown.upper, octaves))
    return format_html(
        '<a href="{}"><title>{}</title><line class="within" x1="{}%" x2="{}%" y1="{}%" y2="{}%"/>'
        '<circle class="{}" cx="{}%" cy="{}%" r="{}"/></a>',
        shown.url, shown.label, x, x, *ends, kind, x, _by_ratio(shown.actual, octaves), radius,
    )  # fmt: skip


def _guided(
    parts: Iterable[SafeString], guides: Sequence[tuple[str, str]], label: str, *, role: str = "img"
) -> SafeString:
    """Draw the lines of *guides* (height, label) under *parts*, and their labels beside them."""
    under = [
        format_html('<line class="guide" x1="0%" x2="100%" y1="{}%" y2="{}%"/>', y, y) for y, _ in guides
    ]
    beside = [format_html('<text y="{}%" dy=".35em">{}</text>', y, text) for y, text in guides]
    drawn = format_html_join("", "{}", ((part,) for part in (*under, *parts, *beside)))
    size = format_html('width="100%" height="{}"', _HEIGHT)
    return format_html('<svg class="drawing" {} role="{}" aria-label="{}">{}</svg>', size, role, label, drawn)


def _across_share(share: float) -> str:
    return f"{_LEFT + share * (_RIGHT - _LEFT):.2f}"


def _across(position: int, count: int) -> str:
    share = position / (count - 1) if count > 1 else 0.5
    return f"{_LEFT + share * (_RIGHT - _LEFT):.2f}"


def _height(value: float, low: float, high: float) -> str:
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return f"{_BOTTOM - share * (_BOTTOM - _TOP):.2f}"


def _by_ratio(ratio: float, octaves: float) -> str:
    return _height(_octaves(ratio), -octaves, octaves)


def _octaves(ratio: float) -> float:
    return math.log2(ratio) if ratio > 0 else -_OCTAVES[1]
