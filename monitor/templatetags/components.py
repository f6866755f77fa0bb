"""Components of pages: `/style` shows each of them, and the head of each says its arguments."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from monitor import health
from monitor.core import units
from monitor.depot.series.staleness import Staleness
from monitor.health import HealthProblem
from monitor.models.audit_event import VIEW_AUDIT
from monitor.runs.ledger.attribution import outcome_label
from monitor.templatetags.gridcast import ICONS, ago
from monitor.web.charts import svg
from monitor.web.charts.chart_table import TablePage
from monitor.web.charts.time_range import LABELS, PARAMETERS, PageRange
from monitor.web.pages.http.filter_field import FilterField

register = template.Library()
_ARROW = " \N{RIGHTWARDS ARROW} "  # between the ends of an edge
# The pages of the parts of the grid that fail, by kind of the part.
_PART_PAGES = {
    **dict.fromkeys(("at", "site", "source", "destination", "edge", "compute"), "site"),
    "reporter": "reporter",
    "series": "series",
}
# By precision, the part of ``2026-11-26 03:00:07`` that is shown beside in UTC; of a day, none.
_BESIDE = {"second": (11, 19), "minute": (11, 16), "day": (0, 0)}


@dataclass(frozen=True)
class RangeLink:
    label: str
    query: str
    is_current: bool


@register.filter
def banner_state(problems: Sequence[HealthProblem]) -> str:
    """Return what the banner is about, the components; screen readers hear of a change."""
    return health.components(problems)


@register.simple_tag(takes_context=True)
def time(context: Mapping[str, Any], when: datetime | None, precision: str = "second") -> SafeString:
    """Format a time in the reader's zone, with UTC beside; *precision*: second, minute or day."""
    if not when:  # empty: a template asks for the time of a row that is gone
        return SafeString("&ndash;")
    utc = when.astimezone(UTC)
    local = when.astimezone(context.get("zone", UTC))
    first, last = _BESIDE[precision]
    beside = ""
    utc_text, local_text = utc.isoformat(" ")[:19], local.isoformat(" ")[:19]  # strftime is slow
    if last:
        day = "" if utc_text[:10] == local_text[:10] else f"{utc_text[5:10]} "
        shown = "" if utc_text == local_text else f"{day}{utc_text[first:last]}"
        beside = f' <span class="zone">{shown} UTC</span>'
    stamp = utc_text.replace(" ", "T")
    # Safe: consists of numbers and constants. A page has hundreds; format_html is slow.
    return mark_safe(  # noqa: S308
        f'<time datetime="{stamp}Z">{local_text[: last or 10]}{beside}</time>'
    )


@register.simple_tag
def state(value: str, text: str = "", freshness: str = Staleness.CURRENT) -> SafeString:
    """Show the chip of a state of a run, or of a freshness: its icon and *text*, by default its name.

    The state of a result that is not current by its *freshness* is grey: it says nothing about the present.
    """
    name = value.replace("_", " ") if value in set(Staleness) else outcome_label(value)
    past = "" if freshness == Staleness.CURRENT else " past"
    return format_html('<span class="chip state s-{}{}">{}{}</span>', value, past, ICONS[value], text or name)


@register.simple_tag
def fresh_age(then: datetime | None, now: datetime, freshness: str = Staleness.CURRENT) -> SafeString:
    """Show the age of a result; if it is not current, with the icon and the word of its *freshness*.

    Of a series without a result, *then* is the time of a slot that was skipped.
    """
    text = ago(then, now) if then else SafeString("never")
    if then and freshness == Staleness.NEVER_SEEN:
        return format_html('<span class="age">{}, no result yet</span>', text)
    if freshness == Staleness.CURRENT:
        return format_html('<span class="age">{}</span>', text)
    return format_html(
        '<span class="age {0}"><span class="state s-{0}">{1}</span>{2}{3}</span>',
        str(freshness),
        ICONS[freshness],
        freshness.replace("_", " "),
        format_html(", {}", text) if then else "",
    )


@register.simple_tag(takes_context=True)
def site_link(context: Mapping[str, Any], name: str) -> SafeString:
    """Link a site by its name to its page, in the time range of this page."""
    return _link(_url("site", name), _range_query(context), name, "site")


@register.simple_tag(takes_context=True)
def resource_link(context: Mapping[str, Any], name: str, sites: Mapping[str, str]) -> SafeString:
    """Link a resource by its name to its page; *sites*: by resource. Without its site, show the name."""
    if name not in sites:
        return format_html("{}", name)
    return _link(_url("resource", sites[name], name), _range_query(context), name, "resource")


@register.filter
def part_links(part: object) -> SafeString:
    """Link the names in *part*, such as ``site anl`` or ``at anl``, to their pages."""
    return _part_links(str(part))


@lru_cache(maxsize=4096)
def _part_links(part: str) -> SafeString:
    kind, _, names = part.partition(" ")
    page = _PART_PAGES.get(kind)
    if page is None or not names:
        return format_html("{}", part)
    links = ((_url(page, name), page, name) for name in names.split(_ARROW))
    return format_html("{} {}", kind, format_html_join(_ARROW, '<a href="{}" class="{}">{}</a>', links))


@register.simple_tag(takes_context=True)
def series_link(context: Mapping[str, Any], name: str) -> SafeString:
    """Link a series by its name to its page, in the time range of this page."""
    return _link(_url("series", name), _range_query(context), name, "series")


@register.simple_tag(takes_context=True)
def run_link(context: Mapping[str, Any], run: uuid.UUID, slot: datetime) -> SafeString:
    """Link a run by its scheduled time to its page."""
    return format_html('<a class="run" href="{}">{}</a>', reverse("run", args=[run]), time(context, slot))


@register.simple_tag(takes_context=True)
def audit_link(context: Mapping[str, Any], subject: str) -> SafeString:
    """Link the changes of the object *subject*, a name or a path, for users that may see the audit record."""
    if not context["user"].has_perm(VIEW_AUDIT):
        return SafeString("")
    return format_html('<a href="{}?{}">Audit record</a>', reverse("audit"), urlencode({"subject": subject}))


@register.simple_tag
def sparkline(values: Sequence[float], label: str, unit: str = "seconds") -> SafeString:
    """Draw *values*, oldest first; screen readers hear *label* with the lowest, highest and newest value."""
    if len(values) < 2:
        return SafeString("")
    low, high, newest = (units.humanised(value, unit) for value in (min(values), max(values), values[-1]))
    return svg.sparkline(values, f"{label}: {low} to {high}, newest {newest}")


@register.simple_tag(takes_context=True)
def query(context: Mapping[str, Any], **changes: object) -> str:
    """Return the query string of this page with *changes*; None or an empty text removes a parameter."""
    kept = context["request"].GET.copy()
    kept.pop("seen", None)
    for name, value in changes.items():
        kept.pop(name, None)
        if value not in (None, ""):
            kept[name] = str(value)
    return str(kept.urlencode())


@register.simple_tag(takes_context=True)
def live(context: Mapping[str, Any], digest: str = "") -> SafeString:
    """Return the attributes of the part of a page that updates itself; *digest*: of the content it shows.

    The view of the page is decorated by ``monitor.web.pages.http.updates.live``; the page leaves its block
    ``banner_polls`` empty, because the banner comes along.
    """
    asked = query(context, seen=digest)
    url = f"{context['request'].path}{'?' if asked else ''}{asked}"
    return format_html('hx-get="{}" hx-trigger="every 10s, back from:body" hx-swap="morph:outerHTML"', url)


@register.simple_tag(takes_context=True)
def range_query(context: Mapping[str, Any]) -> str:
    """Return the time range of this page as a query string with its question mark; empty without a range."""
    return _range_query(context)


@register.inclusion_tag("parts/range_picker.html", takes_context=True)
def range_picker(context: Mapping[str, Any], chosen: PageRange) -> dict[str, Any]:
    """Choose the time range of the page; all other parameters of the query string are kept."""
    kept = _others(context, [*PARAMETERS, "page", "rows"])
    zone = context.get("zone", UTC)
    times = {"from": chosen.start, "to": None if chosen.is_relative else chosen.end}
    return {
        "range": chosen,
        "links": [
            RangeLink(label, urlencode([*kept, ("range", key)]), key == chosen.key)
            for key, label in LABELS.items()
        ],
        "kept": kept,
        "zone_name": context.get("zone_name", "UTC"),
        **{
            name: f"{moment.astimezone(zone):%Y-%m-%dT%H:%M}" if moment else ""
            for name, moment in times.items()
        },
    }


@register.inclusion_tag("parts/pages.html", takes_context=True)
def pager(context: Mapping[str, Any], page: int, pages: int, label: str = "Pages") -> dict[str, Any]:
    """Link the previous and the next page of a list, with the rest of the query string.

    A second pager of the same list needs a *label* of its own, so that screen readers can tell them apart.
    """
    return {
        "label": label,
        "page": page,
        "pages": pages,
        "earlier": query(context, page=page - 1) if page > 1 else "",
        "later": query(context, page=page + 1) if page < pages else "",
    }


@register.inclusion_tag("parts/filter_form.html", takes_context=True)
def filter_form(context: Mapping[str, Any], fields: Sequence[FilterField], label: str) -> dict[str, Any]:
    """Show a form that filters the page by *fields*; other parameters, such as the time range, are kept."""
    names = [field.name for field in fields]
    kept = _others(context, [*names, "page", "rows"])
    defaults = context.get("defaults", ())  # filters in force that the query string does not name
    return {
        "fields": fields,
        "label": label,
        "kept": kept,
        "cleared": urlencode([*kept, *((name, "") for name in defaults)]),
        "is_filtered": bool(defaults) or any(context["request"].GET.get(name) for name in names),
    }


@register.simple_tag(takes_context=True)
def sort_header(context: Mapping[str, Any], label: str, key: str, order: str, kind: str = "") -> SafeString:
    """Show the head of a column that sorts by *key*; *order* is the order in force, ``-key`` descending.

    *kind* is the class of the cell, such as ``number``.
    """
    direction = {key: "ascending", f"-{key}": "descending"}.get(order, "none")
    following = f"-{key}" if order == key else key
    return format_html(
        '<th scope="col" class="{}" aria-sort="{}"><a href="?{}">{}</a></th>',
        kind,
        direction,
        query(context, order=following, page=None),
        label,
    )


@register.inclusion_tag("parts/explained.html")
def explained(label: str, text: str) -> dict[str, str]:
    """Show *label*, which opens its explanation *text*; not within a table, which would cut it off."""
    return {"label": label, "text": text}


@register.inclusion_tag("parts/table_behind.html", takes_context=True)
def table_behind(
    context: Mapping[str, Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    caption: str,
    download: str = "",
) -> dict[str, Any]:
    """Show the values of a chart as a table that opens; *download* is the URL of all of them."""
    return {"columns": columns, "rows": _timed(context, rows), "caption": caption, "download": download}


@register.inclusion_tag("parts/table_behind.html", takes_context=True)
def paged_table_behind(
    context: Mapping[str, Any], columns: Sequence[str], page: TablePage, caption: str, download: str = ""
) -> dict[str, Any]:
    """Show one page of the values of a chart; its number is the parameter ``rows`` of the query string."""
    return {
        **table_behind(context, columns, page.rows, caption, download),
        "page": page,
        "is_open": "rows" in context["request"].GET,
        "newer": query(context, rows=page.number - 1) if page.number > 1 else "",
        "older": query(context, rows=page.number + 1) if page.number < page.pages else "",
    }


def _others(context: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the parameters of the query string of this page without *names*."""
    parameters = context["request"].GET
    return [
        (name, value)
        for name, values in parameters.lists()
        if name not in {*names, "seen"}
        for value in values
    ]


def _timed(context: Mapping[str, Any], rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Return *rows* with their times in the zone of the reader."""
    return [[time(context, each) if isinstance(each, datetime) else each for each in row] for row in rows]


def _range_query(context: Mapping[str, Any]) -> str:
    chosen = context.get("time_range")
    return f"?{chosen.query_string}" if isinstance(chosen, PageRange) else ""


@lru_cache(maxsize=8192)  # a page has hundreds, most of them the same as on the page before
def _link(url: str, query: str, name: str, kind: str) -> SafeString:
    return format_html('<a class="{}" href="{}{}">{}</a>', kind, url, query, name)


@lru_cache(maxsize=8192)
def _url(page: str, *names: str) -> str:
    return reverse(page, args=names)
