"""A calendar strip of a month: a cell for each day, shaded by its availability."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.core.units import tenths_of_percent
from monitor.models import SiteDay

# From the best to the worst: the least availability, and the class of the cell. The heights differ, too, so
# that colour is not needed to tell them apart.
_SHADES = ((0.999, "a-4"), (0.95, "a-3"), (0.8, "a-2"), (0.5, "a-1"), (0.0, "a-0"))
_LABELS = {"a-4": "≥ 99.9 %", "a-3": "≥ 95 %", "a-2": "≥ 80 %", "a-1": "≥ 50 %", "a-0": "< 50 %"}
HEIGHTS = {"a-4": 10, "a-3": 8, "a-2": 6, "a-1": 4, "a-0": 2.5, "a-scheduled": 10, "a-unknown": 10}
LEGEND = [*_LABELS.items(), ("a-scheduled", "maintenance only"), ("a-unknown", "nothing known")]


def availability_legend() -> SafeString:
    """Explain the cells of the strips."""
    return format_html_join(
        "",
        '<span class="nowrap"><svg class="swatch-day" viewBox="0 0 9 10" aria-hidden="true">'
        '<rect class="a-back" width="9" height="10"/><rect class="{}" y="{}" width="9" height="{}"/></svg>'
        " {}</span>",
        ((shade, 10 - HEIGHTS[shade], HEIGHTS[shade], label) for shade, label in LEGEND),
    )


def availability_strip(days: Sequence[SiteDay | None], month: date, name: str) -> SafeString:
    """Draw a cell for each of *days* of *month*, with its figures as a title; None: no cell."""
    cells = "".join(
        day_cell(day, position * 10, 0, width=9) for position, day in enumerate(days) if day is not None
    )
    return format_html(
        '<svg class="days" viewBox="0 0 {} 10" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg>',
        len(days) * 10 - 1,
        f"{name}: {_summary(days, month)}",
        SafeString(cells),
    )


def day_cell(day: SiteDay, x: int, y: int, *, width: int) -> str:
    """Return the cell of *day* as SVG, with its figures as a title; it consists of numbers and constants."""
    return _cell(day.day, day.availability, day.reliability, x, y, width)


@lru_cache(maxsize=16_384)  # past days seldom change, and a list has hundreds
def _cell(
    day: date, availability: float | None, reliability: float | None, x: int, y: int, width: int
) -> str:
    shade = _shade(availability, reliability)
    height = HEIGHTS[shade]
    return (
        f"<g><title>{_words(day, availability, reliability)}</title>"
        f'<rect class="a-back" x="{x}" y="{y}" width="{width}" height="10"/>'
        f'<rect class="{shade}" x="{x}" y="{y + 10 - height}" width="{width}" height="{height}"/></g>'
    )


def _shade(availability: float | None, reliability: float | None) -> str:
    if availability is None:
        return "a-unknown"
    if reliability is None:
        return "a-scheduled"
    return next(shade for least, shade in _SHADES if availability >= least)


def _words(day: date, availability: float | None, reliability: float | None) -> str:
    if availability is None:
        return f"{day}: nothing known"
    if reliability is None:
        return f"{day}: maintenance"
    return f"{day}: available {tenths_of_percent(availability)}, reliable {tenths_of_percent(reliability)}"


def _summary(days: Sequence[SiteDay | None], month: date) -> str:
    """Return which days had downtime: ``downtime on 3 of 31 days, most on 2026-03-14``."""
    down = {month + timedelta(days=number): day.down_seconds for number, day in enumerate(days) if day}
    bad = [day for day, seconds in down.items() if seconds]
    if not bad:
        return f"no downtime on {len(down)} days"
    return f"downtime on {len(bad)} of {len(down)} days, most on {max(bad, key=down.__getitem__)}"
