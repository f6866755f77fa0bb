"""Drawings of the scoreboard, as SVG: they need no JavaScript.

Places are shares of the drawing: it grows with the page, and its words do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.units import percent

_HEIGHT = 150
_TOP, _BOTTOM = 8.0, 92.0  # per cent of the height
_LEFT, _RIGHT = 12.0, 98.0  # per cent of the width; before it the words of guides
_OCTAVES = (0.5, 2.0)  # that are shown at least and at most: to four times the forecast, and a quarter


@dataclass(frozen=True)
class Guide:
    """A level that others are held against."""

    value: float
    words: str


@dataclass(frozen=True)
class Missed:
    """A truth by what was forecast, with the interval, as ratios to the median; where it leads, and in
    words."""

    truth: float
    lower: float
    upper: float
    url: str
    words: str


_WIDE = (Guide(2.0, "twice as long"), Guide(1.0, "as forecast"), Guide(0.5, "half as long"))
_NARROW = (Guide(1.25, "a quarter more"), Guide(1.0, "as forecast"), Guide(0.8, "a fifth less"))


def lines(
    columns: Sequence[tuple[str, Sequence[float | None]]],
    guides: Sequence[Guide],
    *,
    low: float,
    high: float,
    label: str,
) -> SafeString:
    """A line for each of *columns* (its class, its values), broken where there is none, from *low* to
    *high*."""
    parts: list[SafeString] = []
    for kind, values in columns:
        points = [
            (_across(place, len(values)), _height(value, low, high))
            for place, value in enumerate(values)
            if value is not None
        ]
        there = [value is not None for value in values]
        parts += _segments(kind, values, low, high) if sum(there) > 1 else []
        parts += [format_html('<circle class="{}" cx="{}%" cy="{}%" r="3"/>', kind, *at) for at in points]
    return _guided(parts, [(_height(one.value, low, high), one.words) for one in guides], label)


def ratios(missed: Sequence[Missed], *, label: str) -> SafeString:
    """For each of *missed*, oldest first, the interval as a bar and the truth as a dot; on a scale on which
    twice as long is as far from the middle as half as long."""
    shown = max(abs(_octaves(ratio)) for one in missed for ratio in (one.truth, one.lower, one.upper))
    octaves = min(max(shown, _OCTAVES[0]), _OCTAVES[1])
    parts = [_missed(one, _across(place, len(missed)), octaves) for place, one in enumerate(missed)]
    guides = _WIDE if octaves > 1 else _NARROW
    return _guided(parts, [(_by_ratio(one.value, octaves), one.words) for one in guides], label)


def coverage_bar(share: float | None, promised: float) -> SafeString:
    """How many lay inside, with a mark at what was promised."""
    if share is None:
        return SafeString("")
    return format_html(
        '<svg class="covered" width="6rem" height="8" role="img" aria-label="{} of {} promised">'
        '<rect class="all" width="100%" height="8"/><rect class="share" width="{}%" height="8"/>'
        '<line x1="{}%" x2="{}%" y1="0" y2="8"/></svg>',
        percent(share), percent(promised), f"{100 * share:.1f}", f"{100 * promised:g}", f"{100 * promised:g}",
    )  # fmt: skip


def _segments(kind: str, values: Sequence[float | None], low: float, high: float) -> Iterator[SafeString]:
    for place, (one, other) in enumerate(pairwise(values)):
        if one is not None and other is not None:
            ends = (_across(place, len(values)), _across(place + 1, len(values)))
            heights = (_height(one, low, high), _height(other, low, high))
            yield format_html('<line class="{}" x1="{}%" x2="{}%" y1="{}%" y2="{}%"/>', kind, *ends, *heights)


def _missed(one: Missed, x: str, octaves: float) -> SafeString:
    kind, radius = ("inside", "2.5") if one.lower <= one.truth <= one.upper else ("outside", "3.5")
    ends = (_by_ratio(one.lower, octaves), _by_ratio(one.upper, octaves))
    return format_html(
        '<a href="{}"><title>{}</title><line class="within" x1="{}%" x2="{}%" y1="{}%" y2="{}%"/>'
        '<circle class="{}" cx="{}%" cy="{}%" r="{}"/></a>',
        one.url, one.words, x, x, *ends, kind, x, _by_ratio(one.truth, octaves), radius,
    )  # fmt: skip


def _guided(parts: Iterable[SafeString], guides: Sequence[tuple[str, str]], label: str) -> SafeString:
    """*parts* on lines of *guides* (height, words), whose words are above all."""
    under = [
        format_html('<line class="guide" x1="0%" x2="100%" y1="{}%" y2="{}%"/>', y, y) for y, _ in guides
    ]
    above = [format_html('<text x="0" y="{}%" dy="-4">{}</text>', y, words) for y, words in guides]
    drawn = format_html_join("", "{}", ((part,) for part in (*under, *parts, *above)))
    size = format_html('width="100%" height="{}"', _HEIGHT)
    return format_html('<svg class="drawing" {} role="img" aria-label="{}">{}</svg>', size, label, drawn)


def _across(place: int, many: int) -> str:
    share = place / (many - 1) if many > 1 else 0.5
    return f"{_LEFT + share * (_RIGHT - _LEFT):.2f}"


def _height(value: float, low: float, high: float) -> str:
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return f"{_BOTTOM - share * (_BOTTOM - _TOP):.2f}"


def _by_ratio(ratio: float, octaves: float) -> str:
    return _height(_octaves(ratio), -octaves, octaves)


def _octaves(ratio: float) -> float:
    return math.log2(ratio) if ratio > 0 else -_OCTAVES[1]
