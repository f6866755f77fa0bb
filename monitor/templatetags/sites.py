"""Components of the pages of sites, resources and reports: states, calendars, cells of figures."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from monitor.analysis.availability.site_states import OperationalState
from monitor.models.run import State
from monitor.templatetags.gridcast import ICONS
from monitor.web.charts.availability_calendar import availability_calendar

register = template.Library()
register.filter("calendar", availability_calendar)

# The shape and the word of each state of a site or a resource.
_STATES = {
    OperationalState.UP: (State.PASSED, "up"),
    OperationalState.HELD: (State.SKIPPED, "paused"),
    OperationalState.MAINTENANCE: (State.SKIPPED, "in maintenance"),
    OperationalState.DOWN: (State.FAILED, "down"),
    OperationalState.UNKNOWN: (State.NO_DATA, "unknown"),
}


@register.simple_tag
def place_state(state: OperationalState) -> SafeString:
    """Show the chip of the state of a site or a resource."""
    shape, word = _STATES[state]
    return format_html('<span class="chip state s-{}">{}{}</span>', shape, ICONS[shape], word)


@register.filter
def figure_cells(figures: Iterable[tuple[str, str]]) -> SafeString:
    """Return a cell for each of *figures*, pairs of label and text: in Python, as there are thousands."""
    cells = "".join(f'<td class="number" data-label="{label}">{text}</td>' for label, text in figures)
    return mark_safe(cells)  # noqa: S308  # numbers, units and the labels of columns
