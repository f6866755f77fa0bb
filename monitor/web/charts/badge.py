"""A badge: a small picture for other pages that says the state of something."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString

MOST_CHARACTERS = 40  # of the label
_CHARACTER_WIDTH, _PADDING = 7, 8  # of the font at 11 px, generously
_GREY = "#5c636b"
# By state of ``monitor.web.status.public_status``; white text has a contrast of at least 4.5 on each.
_COLOURS = {
    "operational": "#0d766e",
    "degraded": "#a84b08",
    "down": "#b3261e",
    "maintenance": "#0b5394",
    "paused": "#0b5394",
}


def badge(label: str, state: str) -> SafeString:
    """Draw *label* and *state* side by side, as a document of its own."""
    shown = label if len(label) <= MOST_CHARACTERS else f"{label[: MOST_CHARACTERS - 1]}…"
    left, right = (len(text) * _CHARACTER_WIDTH + 2 * _PADDING for text in (shown, state))
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" viewBox="0 0 {width} 20"'
        ' role="img" aria-label="{label}: {state}"><title>{label}: {state}</title>'
        '<clipPath id="c"><rect width="{width}" height="20" rx="3"/></clipPath>'
        '<g clip-path="url(#c)"><rect width="{left}" height="20" fill="#2b3036"/>'
        '<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        '<text x="{at_left}" y="14">{shown}</text><text x="{at_right}" y="14">{state}</text></g></svg>',
        width=left + right,
        label=label,
        state=state,
        shown=shown,
        left=left,
        right=right,
        colour=_COLOURS.get(state, _GREY),
        at_left=left / 2,
        at_right=left + right / 2,
    )
