"""Drawings of the patterns of a series, as SVG: histogram, hours of the week, shares of stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.core.units import humanised

if TYPE_CHECKING:
    from monitor.depot.rollups.histogram import BinnedSigmas
    from monitor.depot.rollups.hour_of_week import HourOfWeek
    from monitor.web.charts.patterns import StageShare

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SHADES = 5
_BAR, _HEIGHT, _HEAD, _FOOT = 28, 150, 18, 34


def sigma_bars(histogram: BinnedSigmas, unit: str) -> SafeString:
    """Draw a bar per bin, with the number of values above the highest.

    The axis has whole standard deviations, with the value of every other one below.
    """
    most = max(histogram.counts)
    bars = format_html_join(
        "",
        '<rect class="bin" x="{}" y="{}" width="{}" height="{}"/>',
        (
            (
                number * _BAR + 1,
                f"{_HEIGHT - _HEIGHT * count / most:.1f}",
                _BAR - 2,
                f"{_HEIGHT * count / most:.1f}",
            )
            for number, count in enumerate(histogram.counts)
        ),
    )
    edges = list(enumerate(histogram.edges))
    ticks = format_html_join(
        "",
        '<text x="{}" y="{}">{}</text>',
        ((number * _BAR, _HEIGHT + 14, _sigmas(edge)) for number, edge in edges if edge == int(edge)),
    )
    values = format_html_join(
        "",
        '<text class="value" x="{}" y="{}">{}</text>',
        (
            (number * _BAR, _HEIGHT + 29, humanised(histogram.mean + edge * histogram.stdev, unit))
            for number, edge in edges
            if edge % 2 == 0 and histogram.mean + edge * histogram.stdev >= 0
        ),
    )
    width = len(histogram.counts) * _BAR
    return format_html(
        '<svg class="sigmas" viewBox="-20 -{} {} {}" role="img" aria-label="Distribution of {} values">'
        '<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>{}<text x="{}" y="-5">{}</text>{}{}</svg>',
        _HEAD, width + 40, _HEAD + _HEIGHT + _FOOT, histogram.n, width, _HEIGHT, _HEIGHT, bars,
        (histogram.counts.index(most) + 0.5) * _BAR, f"{most:,} run{'s' * (most > 1)}", ticks, values,
    )  # fmt: skip


def _sigmas(edge: float) -> str:
    return "mean" if edge == 0 else f"{edge:+.0f} σ".replace("-", "−")  # noqa: RUF001  # the minus sign


def week_cells(week: HourOfWeek, unit: str) -> SafeString:
    """Draw a cell for each hour of the week, darker the longer the mean; the scale has the quantiles."""
    edges = shade_edges(week)
    rows = format_html_join(
        "",
        '<tr><th scope="row"><abbr>{}</abbr></th>{}</tr>',
        ((name[:3], _week_row(week, day, edges, unit)) for day, name in enumerate(WEEKDAYS)),
    )
    labels = format_html_join(
        "", '<th scope="colgroup" colspan="6">{}:00</th>', ((f"{hour:02d}",) for hour in range(0, 24, 6))
    )
    return format_html(
        '<table class="week"><thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table>{}',
        labels, rows, _scale(week, unit),
    )  # fmt: skip


def shade_edges(week: HourOfWeek) -> list[float]:
    """Return the values at which the next shade begins: each shade has equally many cells."""
    present = week.mean[~np.isnan(week.mean)]
    return np.quantile(present, np.arange(1, SHADES) / SHADES).tolist() if len(present) else []


def _week_row(week: HourOfWeek, day: int, edges: Sequence[float], unit: str) -> SafeString:
    return format_html_join(
        "",
        '<td class="w-{}"><span class="visually-hidden">{}</span></td>',
        (
            ("none", "no values")
            if np.isnan(mean)
            else (int(np.searchsorted(edges, mean, "right")) + 1, humanised(float(mean), unit))
            for mean in week.mean[day]
        ),
    )


def _scale(week: HourOfWeek, unit: str) -> SafeString:
    present = week.mean[~np.isnan(week.mean)]
    if not len(present):
        return SafeString("")
    swatches = format_html_join("", '<i class="w-{}"></i>', ((shade,) for shade in range(1, SHADES + 1)))
    return format_html(
        '<p class="scale"><span>{}</span>{}<span>{}</span>'
        '<span class="nowrap"><i class="w-none"></i> no values</span></p>',
        humanised(float(present.min()), unit),
        swatches,
        humanised(float(present.max()), unit),
    )


def share_bars(shares: Sequence[StageShare]) -> SafeString:
    """Draw a bar for each stage, in its colour; negative shares have none."""
    most = max((each.share for each in shares), default=0.0) or 1.0
    rows = format_html_join(
        "",
        '<tr><th scope="row"><span class="swatch c-{}-{}"></span>{}</th><td class="number">{} %</td>'
        '<td class="bar-cell"><svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none"'
        ' aria-hidden="true">'
        '<rect class="c-{}-{}" width="{}" height="8"/></svg></td></tr>',
        (
            (
                each.stage.category, each.stage.shade, each.stage.name, f"{100 * each.share:.1f}",
                each.stage.category, each.stage.shade, f"{max(100 * each.share / most, 0):.1f}",
            )
            for each in shares
        ),
    )  # fmt: skip
    return format_html(
        '<table class="data shares-of-stages"><thead><tr><th scope="col">Stage</th>'
        '<th scope="col" class="number">Share of variance</th><td></td></tr></thead>'
        "<tbody>{}</tbody></table>",
        rows,
    )
