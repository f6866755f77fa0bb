"""The days of a year as a calendar: a column per week, a row per weekday, drawn by the server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.charts.availability_strip import day_cell
from monitor.models import SiteDay

_CELL, _LEFT, _TOP = 12, 30, 16
_WEEKS_OF_A_YEAR = 53
_WEEKDAYS = ((0, "Mon"), (2, "Wed"), (4, "Fri"))


def availability_calendar(days: Sequence[SiteDay]) -> SafeString:
    """Draw a cell for each of *days*, in order, with its figures as a title; draw nothing without days."""
    if not days:
        return SafeString("")
    first = days[0].day - timedelta(days=days[0].day.weekday())
    weeks = (days[-1].day - first).days // 7 + 1
    cells = "".join(_cell(day, first) for day in days)
    down = sum(bool(day.down_seconds) for day in days)
    label = f"{days[0].day} to {days[-1].day}: downtime on {down} of {len(days)} days"
    return format_html(
        '<svg class="calendar" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}</svg>',
        _LEFT + max(weeks, _WEEKS_OF_A_YEAR) * _CELL,  # cells of a young site are not larger
        _TOP + 7 * _CELL,
        label,
        _weekdays(),
        _months(first, weeks),
        SafeString(cells),
    )


def _cell(day: SiteDay, first: date) -> str:
    number = (day.day - first).days
    return day_cell(day, _LEFT + number // 7 * _CELL, _TOP + number % 7 * _CELL, width=10)


def _weekdays() -> SafeString:
    rows = ((_TOP + row * _CELL + 9, name) for row, name in _WEEKDAYS)
    return format_html_join("", '<text x="0" y="{}">{}</text>', rows)


def _months(first: date, weeks: int) -> SafeString:
    """Label the first week that begins in each month; a label needs the width of three weeks."""
    starts = [first + timedelta(weeks=week) for week in range(weeks)]
    labels = [
        (_LEFT + week * _CELL, f"{start:%b}")
        for week, start in enumerate(starts)
        if start.day <= 7 and week <= weeks - 2
    ]
    return format_html_join("", '<text x="{}" y="10">{}</text>', labels)
