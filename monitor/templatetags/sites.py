"""Components of the pages of sites and resources: states of places, and the calendar of availability."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from monitor.availability.site_states import OperationalState
from monitor.charts.availability_calendar import availability_calendar
from monitor.models.run import State
from monitor.templatetags.gridcast import ICONS

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
