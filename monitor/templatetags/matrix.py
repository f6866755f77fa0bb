"""The cells of the overview: rendered in Python, because a page may have a thousand of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from monitor.depot.series.staleness import Staleness
from monitor.models.run import State
from monitor.runs.ledger.attribution import Fault
from monitor.templatetags.gridcast import ICONS, ago, deviation
from monitor.web.charts import svg
from monitor.web.matrix.cell import MatrixCell
from monitor.web.matrix.content import SiteRow
from monitor.web.status import series_states
from monitor.web.status.series_details import SeriesCell

register = template.Library()
_UNBOUND = '<td class="unbound"><span class="visually-hidden">not tested</span></td>'
# The display of the worst standing of a cell: the fault and the state of a single series.
_STANDINGS = {
    series_states.HERE: (Fault.HERE, State.FAILED),
    series_states.SOMEWHERE: (Fault.SOMEWHERE, State.FAILED),
    series_states.MONITORING: (Fault.MONITOR, State.BROKEN),
    series_states.ELSEWHERE: (Fault.ELSEWHERE, State.FAILED),
    series_states.STALE: (Fault.NONE, Staleness.STALE),
    series_states.PASSED: (Fault.NONE, State.PASSED),
    series_states.SKIPPED: (Fault.NONE, State.SKIPPED),
    series_states.UNKNOWN: (Fault.NONE, State.EXPECTED),
}


@register.simple_tag(takes_context=True)
def matrix_cells(context: Mapping[str, Any], row: SiteRow, now: datetime) -> SafeString:
    """Render the cells of *row*."""
    content = context["overview"]
    suites = content.columns if content.are_suites else [context["chosen"].suite] * len(row.cells)
    cells = (_cell(cell, row.site, suite, now) for cell, suite in zip(row.cells, suites, strict=True))
    return mark_safe("".join(cells))  # noqa: S308  # of what renders each of them


def _cell(shown: MatrixCell | None, site: str, suite: str, now: datetime) -> str:
    if shown is None:
        return _UNBOUND
    if shown.series is not None:
        return _series_cell(shown.series)
    # Names of sites and suites are slugs.
    return _group_cell(shown, f"?site={site}&amp;suite={suite}" if suite else f"?site={site}", now)


def _series_cell(shown: SeriesCell) -> str:
    last = shown.last
    if last is None:
        return '<td class="fresh">no run yet</td>'
    is_fresh = shown.freshness == Staleness.CURRENT or not shown.is_executed
    return format_html(
        '<td class="f-{} s-{}"><a class="cell" href="{}">'
        '<span class="status">{}<span class="words">{}{}</span></span>{}{}</a></td>',
        shown.fault if is_fresh else Fault.NONE,
        last.state if is_fresh else shown.freshness,
        _run_url(last.run),
        ICONS[last.state if is_fresh else shown.freshness],
        "" if is_fresh else f"{shown.freshness}, last ",
        shown.words,
        format_html('<span class="rule">{}</span>', shown.skipped) if shown.skipped else "",
        # The head of the column has the trend of the series; a site at which runs failed has its own.
        svg.trend(shown.trend) if any(fault == Fault.HERE for _, fault in shown.trend) else "",
    )


class _ShownCounts(NamedTuple):
    """What a cell shows of its counts: class, icon and words of the worst state, a bar, all in words."""

    kind: str
    status: str
    shares: str
    all_words: str


@lru_cache(maxsize=8192)  # many cells have the same counts, most of them for a long time
def _shown_counts(counts: tuple[int, ...]) -> _ShownCounts:
    cell = MatrixCell(counts, None)
    fault, state = _STANDINGS[cell.worst]
    return _ShownCounts(
        f"f-{fault} s-{state}",
        f'{ICONS[state]}<span class="words">{cell.words}</span>',
        svg.shares(counts),
        cell.all_words,
    )


def _group_cell(shown: MatrixCell, address: str, now: datetime) -> str:
    """Render worst state, number of series, deviation and oldest result; hover and focus open the rest."""
    drawn = _shown_counts(shown.counts)
    figures = shown.figures
    single = figures.single if figures else None
    oldest = ago(figures.oldest, now) if figures and figures.oldest else ""
    numbers = [] if single else [f"{shown.series_count}<i> series</i>"]
    if figures and figures.deviation is not None:
        numbers.append(f"<b>{deviation(figures.deviation)}</b>")
    if oldest:
        numbers.append(oldest)
    hours = svg.hourly(single.means, height=16, hour_width=3) if single else ""
    url = reverse("series", args=[single.name]) if single else address
    more = "</span><span>".join(_more(shown, drawn, oldest, now))
    # Consists of numbers, constants and names of series, which are slugs. format_html is slow.
    return (
        f'<td class="{drawn.kind}"><a class="cell" href="{url}"><span class="status">{drawn.status}{hours}'
        f'<span class="total">{", ".join(numbers)}</span></span>{"" if single else drawn.shares}'
        f'<span class="more"><span>{more}</span></span></a></td>'
    )


def _more(shown: MatrixCell, drawn: _ShownCounts, oldest: str, now: datetime) -> Iterator[str]:
    figures = shown.figures
    single = figures.single if figures else None
    if single:
        yield f"<b>{single.name}</b>: {shown.words}"
    else:
        yield f"<b>{shown.series_count:,} series</b>: {drawn.all_words}"
    if figures is None or figures.oldest is None or shown.newest is None:
        return
    if figures.oldest == shown.newest:
        yield f"Result {oldest}"
    else:
        yield f"Newest result {ago(shown.newest, now)}, oldest {oldest}"
    if figures.deviation is not None:
        of = "its forecast" if single else f"forecast, of the {figures.forecast_count:,} newest results"
        yield f"{'Duration' if single else 'Median duration'} {deviation(figures.deviation)} from {of}"


@lru_cache(maxsize=1024)  # the cells of a series lead to the same run
def _run_url(run: uuid.UUID) -> str:
    return reverse("run", args=[run])
