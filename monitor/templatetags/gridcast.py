"""Filters and tags of the templates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from monitor.analysis.availability.recompute import describe_change
from monitor.core import units
from monitor.depot.rollups.statistics import seconds_since
from monitor.depot.series.segment_diff import parameter_text
from monitor.depot.series.staleness import Staleness
from monitor.models.passkey import logs_in_without_password
from monitor.models.run import State
from monitor.runs.ledger import attribution
from monitor.web.charts import availability_strip, score_svg, svg, week_table
from monitor.web.charts.state_glyphs import STATE_GLYPHS
from monitor.web.places.reporters import ReporterState

_CODE = re.compile(r"(`{1,2})([^`]+)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")
register = template.Library()
register.filter("seconds_to", units.seconds_range)
register.filter("coarse_seconds", units.coarse_seconds)
register.filter("exact", units.exact)
register.filter("percent", units.percent)
register.filter("change_words", describe_change)
register.filter("words", attribution.outcome_label)
register.filter("logs_in_without_password", logs_in_without_password)
register.filter("line", svg.sparkline)
register.filter("trend", svg.trend)
register.filter("hourly", svg.hourly)
register.filter("coverage_bar", score_svg.coverage_bar)
register.filter("failure_week", week_table.failure_week)
register.simple_tag(availability_strip.availability_strip, name="availability_strip")
register.simple_tag(availability_strip.availability_legend, name="availability_legend")

# The icons of parts/icons.html: a shape per state, so that colour is not needed to distinguish them.
ICONS = {
    state: SafeString(f'<svg class="icon" aria-hidden="true"><use href="#icon-{state}"/></svg>')
    for state in [*State.values, *map(str, Staleness)]
}


@register.filter
def seconds(value: float) -> str:
    """Format a duration in seconds, with a minus sign if it is negative."""
    return units.seconds(value).replace("-", "\N{MINUS SIGN}")


@register.filter
def signed_seconds(value: float) -> str:
    """Format *value* in whole seconds with its sign, such as ``+3,600 s``."""
    return f"{value:+,.0f} s".replace("-", "\N{MINUS SIGN}")


@register.filter
def tenths_of_percent(share: float) -> str:
    """Format a share of 1 to a tenth of a percent, with a minus sign if it is negative."""
    return units.tenths_of_percent(share).replace("-", "\N{MINUS SIGN}")


@register.filter
def humanised(value: float, unit: str) -> str:
    """Format *value* with its *unit*, with a minus sign if it is negative."""
    return units.humanised(value, unit).replace("-", "\N{MINUS SIGN}", value < 0)


@register.filter
def breakable(name: str) -> SafeString:
    """Allow line breaks in a long *name* after dots, underscores and slashes."""
    return SafeString(re.sub(r"(?<=[._/])(?=[\w{])", "<wbr>", escape(name)))


@register.filter
def glyph(state: str) -> str:
    """Return the symbol of *state* in the legend of a chart."""
    return STATE_GLYPHS[State(state)]


@register.filter
def parameter(value: Any, name: str) -> str:
    """Format the *value* of the parameter *name*, with its unit."""
    return parameter_text(name, value)


@register.filter
def icon(state: str) -> SafeString:
    """Return the icon of *state*."""
    return ICONS[state]


@register.simple_tag
@lru_cache(maxsize=1024)  # the cells of a series show the same age
def age(then: datetime | None, now: datetime) -> SafeString:
    """Format the time from *then*, if there is one, to *now*; the browser keeps it current."""
    return _age(then, (now - then).total_seconds()) if then else SafeString("&ndash;")


@register.simple_tag
@lru_cache(maxsize=1024)
def ago(then: datetime | None, now: datetime) -> SafeString:
    """Format the age of a past event, if there was one.

    It is never negative, even if the clock of its source is ahead of ours.
    """
    return _age(then, seconds_since(then, now)) if then else SafeString("&ndash;")


@register.simple_tag
def due(slot: datetime, now: datetime) -> SafeString:
    """Format when a scheduled run is due, or by how much it is overdue; the browser keeps it current."""
    seconds = (slot - now).total_seconds()
    if seconds >= 1:
        text = f"next run {units.age(-seconds)}"
    else:
        text = "due now" if seconds > -1 else f"overdue by {units.age(-seconds).removesuffix(' ago')}"
    # Safe: consists of numbers and constants.
    return mark_safe(  # noqa: S308
        f'<time datetime="{slot:%Y-%m-%dT%H:%M:%SZ}" title="{slot:%Y-%m-%d %H:%M:%S} UTC" '
        f'data-due="{seconds:.0f}">{text}</time>'
    )


def _age(then: datetime, seconds: float) -> SafeString:
    day, time = then.isoformat(" ")[:19].split(" ")  # a page has a thousand; strftime is slow
    # Safe: consists of numbers and constants.
    return mark_safe(  # noqa: S308
        f'<time datetime="{day}T{time}Z" title="{day} {time} UTC" '
        f'data-age="{seconds:.0f}">{units.age(seconds)}</time>'
    )


@register.simple_tag(takes_context=True)
def failure_strip(
    context: dict[str, Any], counts: Sequence[int], starts: Sequence[datetime], most: int
) -> SafeString:
    """Draw failures by interval, with times of the reader's zone."""
    return svg.failure_strip(counts, starts, most, context.get("zone", UTC))


@register.simple_tag(takes_context=True)
def with_filter(context: dict[str, Any], name: str, value: str) -> str:
    """Return the query string of the page with the filter *name* set to *value*."""
    return urlencode({**context["filters"], name: value})


@register.filter
def deviation(relative: float) -> str:
    """Format a difference relative to a forecast, such as ``+8 %``."""
    whole = round(100 * relative)
    return f"{whole:+d} %".replace("-", "\N{MINUS SIGN}") if whole else "\N{PLUS-MINUS SIGN}0 %"


@register.filter
def signed_percent(relative: float) -> str:
    """Format a relative change to a tenth of a percent, such as ``+8.2 %``."""
    return f"{100 * relative:+,.1f} %".replace("-", "\u2212")


@register.filter
def significant(value: float) -> str:
    """Format *value* with three significant digits."""
    return units.significant(value)


@register.filter
def thousands(count: int) -> str:
    """Format *count* with thousands separators."""
    return f"{count:,}"


# The shape of each state of a reporter: working, at fault, or waiting for a person.
_REPORTER_ICONS = {
    ReporterState.REPORTING: State.PASSED,
    ReporterState.SILENT: State.LOST,
    ReporterState.POLICY_UNREADABLE: State.FAILED,
    ReporterState.NEVER_SEEN: State.MISSED,
    ReporterState.REVOKED: State.NO_DATA,
    ReporterState.NOT_ENROLLED: State.EXPECTED,
}


@register.filter
def reporter_icon(state: ReporterState) -> SafeString:
    """Return the icon of the *state* of a reporter."""
    return ICONS[_REPORTER_ICONS[state]]


@register.filter
def milliseconds(value: float) -> str:
    """Format *value* seconds to the millisecond, so that a column has one unit; it may be no number."""
    return f"{value:,.3f} s" if math.isfinite(value) else "unknown"


@register.filter
def offset(value: float) -> str:
    """Format an offset of *value* seconds with its sign, to the millisecond."""
    return f"{'+' if value > 0 else ''}{milliseconds(value)}".replace("-", "\N{MINUS SIGN}")


@register.filter
def inline_markup(text: str) -> SafeString:
    """Return *text* as HTML: ``*emphasis*``, and code in one or two backquotes; no other markup."""
    escaped = _CODE.sub(r"<code>\2</code>", escape(text))
    return mark_safe(_EMPHASIS.sub(r"<em>\1</em>", escaped))  # noqa: S308  # escaped before
