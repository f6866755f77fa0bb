"""Breadcrumbs: the pages above a page, as its context names them."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse

_LABELS: Mapping[str, str] = {
    "access": "Users and roles",
    "access-groups": "Groups",
    "availability": "Availability",
    "failures": "Failures",
    "incidents": "Incidents",
    "ping-keys": "Ping keys",
    "reporters": "Reporters",
    "settings": "Settings",
    "settings-alerts": "Alert rules",
    "settings-series": "Series",
    "settings-suites": "Suites",
    "signatures": "Signatures",
    "webhooks": "Webhooks",
}


def crumbs_of(*pages: str) -> list[tuple[str, str]]:
    """Return the labels and addresses of *pages*, names of URLs without arguments."""
    return [(_LABELS[page], reverse(page)) for page in pages]
