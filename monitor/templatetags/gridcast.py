"""Filters and tags of the pages' templates."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from monitor import units
from monitor.charts import score_svg, svg
from monitor.depot.rollups.statistics import seconds_since
from monitor.ledger import attribution
from monitor.models.run import State
from monitor.overview import site_matrix
from monitor.overview.grid import Cell
from monitor.overview.site_matrix import Share
from monitor.series.segment_diff import parameter_text

register = template.Library()
register.filter("humanised", units.humanised)
register.filter("seconds", units.seconds)
register.filter("coarse_seconds", units.coarse_seconds)
register.filter("exact", units.exact)
register.filter("percent", units.percent)
register.filter("words", attribution.outcome_label)
register.filter("sparkline", svg.sparkline)
register.filter("trend", svg.trend)
register.filter("hourly", svg.hourly)
register.filter("coverage_bar", score_svg.coverage_bar)

# The icons of parts/icons.html: a shape for every state, so that no colour is needed to tell them apart.
ICONS = {
    state: SafeString(f'<svg class="icon" aria-hidden="true"><use href="#icon-{state}"/></svg>')
    for state in State.values
}

# The signs with which the charts mark them.
GLYPHS = {
    State.FAILED: "✖",
    State.TIMED_OUT: "⧗",
    State.BROKEN: "◆",
    State.MISSED: "◇",
    State.LOST: "◈",
    State.SKIPPED: "▷",
    State.NO_DATA: "○",
}


@register.filter
def breakable(name: str) -> SafeString:
    """A long *name* that may go on in the next line after each of its dots and underscores."""
    return SafeString(re.sub(r"(?<=[._])(?=\w)", "<wbr>", escape(name)))


@register.filter
def glyph(state: str) -> str:
    """The sign of an outcome in a chart's legend."""
    return GLYPHS[State(state)]


@register.filter
def parameter(value: Any, name: str) -> str:
    """The *value* of the parameter *name* as people read it."""
    return parameter_text(name, value)


@register.filter
def icon(state: str) -> SafeString:
    """The sign of an outcome."""
    return ICONS[state]


@register.simple_tag
@lru_cache(maxsize=1024)  # of one moment: the sites of a series share what they say of its last run
def age(then: datetime, now: datetime) -> SafeString:
    """How long ago *then* was at *now*; keeps counting in the browser."""
    return _passed(then, (now - then).total_seconds())


@register.simple_tag
@lru_cache(maxsize=1024)
def ago(then: datetime, now: datetime) -> SafeString:
    """``age`` of what is over: now, if the clock of who says when it was is ahead of ours."""
    return _passed(then, seconds_since(then, now))


def _passed(then: datetime, passed: float) -> SafeString:
    # Nothing in it came from outside.
    return mark_safe(  # noqa: S308
        f'<time datetime="{then:%Y-%m-%dT%H:%M:%SZ}" title="{then:%Y-%m-%d %H:%M:%S} UTC" '
        f'data-age="{passed:.0f}">{units.age(passed)}</time>'
    )


@register.simple_tag
def cell(seen: Cell | None, now: datetime) -> SafeString:
    """One cell of the overview. Made here and not in a template: there may be a thousand of them."""
    if seen is None:
        return SafeString('<td class="unbound"><span class="unseen">takes no part</span></td>')
    last = seen.last
    if last is None:
        return SafeString('<td class="fresh">no run yet</td>')
    return format_html(
        '<td class="f-{} s-{}"><a class="cell" href="{}"{}>'
        '<span class="said">{}<span class="words">{}</span> {}</span>{}</a></td>',
        seen.whose,
        last.state,
        _run_url(last.run),
        format_html(' title="{}"', last.reason) if last.reason else "",
        ICONS[last.state],
        seen.words,
        age(last.at, now),
        svg.trend(seen.trend),
    )


# How the worst of a share is shown: its fault and its state, as those of a cell.
_STANDINGS = {
    site_matrix.HERE: ("here", State.FAILED),
    site_matrix.SOMEWHERE: ("somewhere", State.FAILED),
    site_matrix.OURS: ("ours", State.BROKEN),
    site_matrix.ELSEWHERE: ("elsewhere", State.FAILED),
    site_matrix.PASSED: ("nobody", State.PASSED),
    site_matrix.UNTOLD: ("nobody", State.EXPECTED),
}


@register.simple_tag(takes_context=True)
def share(context: dict[str, Any], seen: Share | None, site: str, number: int, now: datetime) -> SafeString:
    """One cell of the overview of many: the series of the group of that *number* at *site*."""
    if seen is None:
        return SafeString('<td class="unbound"><span class="unseen">takes no part</span></td>')
    whose, state = _STANDINGS[seen.worst]
    content = context["overview"]
    suite = content.groups[number] if content.are_suites else context["choice"].suite
    asked = {"site": site} | ({"suite": suite} if suite else {})
    return format_html(
        '<td class="f-{} s-{}"><a class="cell" href="?{}">'
        '<span class="said">{}<span class="words">{}</span></span>{}<span class="of">of {}{}</span></a></td>',
        whose,
        state,
        urlencode(asked),
        ICONS[state],
        seen.words,
        svg.shares(seen.counts),
        seen.series,
        format_html(", {}", age(seen.newest, now)) if seen.newest else "",
    )


@register.simple_tag(takes_context=True)
def with_choice(context: dict[str, Any], name: str, value: str) -> str:
    """The query string of what is *asked* for on this page, with another *value*."""
    return urlencode({**context["asked"], name: value})


@register.filter
def thousands(count: int) -> str:
    """*count* with its thousands apart."""
    return f"{count:,}"


@lru_cache(maxsize=1024)
def _run_url(run: uuid.UUID) -> str:
    return reverse("run", args=[run])


@register.filter
def utc(time: datetime) -> SafeString:
    """A time in full, to the second."""
    return format_html(
        '<time datetime="{}">{}</time>',
        time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        time.strftime("%Y-%m-%d %H:%M:%S"),
    )
