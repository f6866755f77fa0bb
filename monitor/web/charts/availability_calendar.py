"""The days of a year as a calendar: a column per week, a row per weekday, drawn by the server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.models import SiteDay
from monitor.web.charts.availability_strip import day_cell

_CELL, _LEFT, _TOP = 12, 30, 16
_WEEKS_OF_A_YEAR = 53
_WEEKDAYS = ((0, "Mon"), (2, "Wed"), (4, "Fri"))


def availability_calendar(days: Sequence[SiteDay]) -> SafeString:
    """Draw a cell for each of *days*, in order, with its figures as a title; draw nothing without days."""
    if not days:
        return SafeString("")
    first = days[0].day - timedelta(days=days[0].day.weekday())
    weeks = (days[-1].day - first).days // 7 + 1
    before = max(_WEEKS_OF_A_YEAR - weeks, 0)  # of a young site: the newest week is always the last of a year
    left = _LEFT + before * _CELL
    cells = "".join(_cell(day, first, left) for day in days)
    down = sum(bool(day.down_seconds) for day in days)
    label = f"{days[0].day} to {days[-1].day}: downtime on {down} of {len(days)} days"
    return format_html(
        '<svg class="calendar" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}{}</svg>',
        left + weeks * _CELL,
        _TOP + 7 * _CELL,
        label,
        _weekdays(),
        _empty_weeks(before),
        _months(first, weeks, left),
        SafeString(cells),
    )


def _cell(day: SiteDay, first: date, left: int) -> str:
    number = (day.day - first).days
    return day_cell(day, left + number // 7 * _CELL, _TOP + number % 7 * _CELL, width=10)


def _weekdays() -> SafeString:
    rows = ((_TOP + row * _CELL + 9, name) for row, name in _WEEKDAYS)
    return format_html_join("", '<text x="0" y="{}">{}</text>', rows)


def _empty_weeks(count: int) -> SafeString:
    """Draw *count* weeks of days that were not computed."""
    corners = ((_LEFT + week * _CELL, _TOP + row * _CELL) for week in range(count) for row in range(7))
    cells = "".join(f"M{x} {y}h10v10h-10z" for x, y in corners)
    return format_html('<path class="before" d="{}"/>', cells) if cells else SafeString("")


def _months(first: date, weeks: int, left: int) -> SafeString:
    """Label the first week that begins in each month; a label needs the width of three weeks."""
    starts = [first + timedelta(weeks=week) for week in range(weeks)]
    labels = [
        (left + week * _CELL, f"{start:%b}")
        for week, start in enumerate(starts)
        if start.day <= 7 and week <= weeks - 2
    ]
    return format_html_join("", '<text x="{}" y="10">{}</text>', labels)
