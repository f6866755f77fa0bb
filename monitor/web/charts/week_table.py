"""A table of weekdays by hours, shaded by the share of runs that failed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.analysis.outcomes.by_hour import WEEKDAYS, HourCount
from monitor.core import units

_SHADES = 4
_HOURS_PER_LABEL = 6


def failure_week(counts: Sequence[Sequence[HourCount]]) -> SafeString:
    """Draw a cell for each hour of the week, in a stronger shade the higher its failed share.

    The highest share has the strongest shade and stands in the legend. Each cell says its numbers in words.
    """
    highest = max((count.share or 0.0 for day in counts for count in day), default=0.0)
    labels = format_html_join(
        "",
        '<th scope="colgroup" colspan="{}">{}:00</th>',
        ((_HOURS_PER_LABEL, f"{hour:02d}") for hour in range(0, 24, _HOURS_PER_LABEL)),
    )
    rows = format_html_join(
        "",
        '<tr><th scope="row">{}</th>{}</tr>',
        ((name[:3], _cells(name, day, highest)) for name, day in zip(WEEKDAYS, counts, strict=True)),
    )
    return format_html(
        '<table class="week"><thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table>{}',
        labels,
        rows,
        _legend(highest),
    )


def hour_rows(counts: Sequence[Sequence[HourCount]]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table behind: weekday, hour, failed and all runs, for hours with runs."""
    return [
        (name, f"{hour:02d}:00", f"{count.failed:,}", f"{count.runs:,}")
        for name, day in zip(WEEKDAYS, counts, strict=False)
        for hour, count in enumerate(day)
        if count.runs
    ]


def _cells(day: str, counts: Sequence[HourCount], highest: float) -> SafeString:
    return format_html_join(
        "",
        '<td class="{}" title="{} {}:00, {}"><span class="visually-hidden">{}</span></td>',
        (
            (_shade(count, highest), day, f"{hour:02d}", words, words)
            for hour, count in enumerate(counts)
            for words in [_words(count)]
        ),
    )


def _words(count: HourCount) -> str:
    if count.share is None:
        return "no runs"
    return f"{count.failed:,} of {count.runs:,} failed, {units.percent(count.share)}"


def _shade(count: HourCount, highest: float) -> str:
    """Return the class: none without runs, 0 for no failure, else 1 to 4 for each quarter of *highest*."""
    if count.share is None:
        return "f-none"
    return f"f-{math.ceil(_SHADES * count.share / highest) if highest else 0}"


def _legend(highest: float) -> SafeString:
    if not highest:
        return SafeString("")
    swatches = format_html_join("", '<i class="f-{}"></i>', ((shade,) for shade in range(_SHADES + 1)))
    return format_html(
        '<p class="scale"><span>0 %</span>{}<span>{} failed</span>'
        '<span class="nowrap"><i class="f-none"></i> no runs</span></p>',
        swatches,
        units.percent(highest),
    )
