"""The incidents of a day of the calendar, as items of a list: in Python, as a month may have a thousand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from monitor.models import Incident

_LASTS_ON = '<span aria-hidden="true">… </span><span class="visually-hidden">still </span>'


def incident_items(
    keys: Iterable[int], incidents: Mapping[int, Incident], begins: Collection[int]
) -> SafeString:
    """Return an item for each of *incidents* that *keys* names; *begins*: those that began on the day."""
    items = []
    for key in keys:
        if key not in incidents:
            continue
        incident, has_begun = incidents[key], key in begins
        is_open = incident.resolved_at is None
        items.append(
            f'<li class="{"begins" if has_begun else "lasts-on"}{" open" if is_open else ""}">'
            f'<a href="{_url(key)}">{"" if has_begun else _LASTS_ON}{escape(str(incident))}'
            f"{' <b>open</b>' if is_open else ''}</a></li>"
        )
    return mark_safe("".join(items))  # noqa: S308  # constants, and texts that are escaped


@lru_cache(maxsize=4096)  # an incident stands on each day on which it was open
def _url(key: int) -> str:
    return reverse("incident", args=[key])
