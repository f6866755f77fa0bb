"""Which probes measure the grid, and which are applications."""

from __future__ import annotations

from django.db.models import Q

import probes
from monitor.models.series import REPORTED_PROBE


def probes_of_kind(kind: str) -> list[str]:
    """Return the names of the probes that measure *kind*, unless a series says otherwise."""
    return [name for name in (*probes.names(), REPORTED_PROBE) if _kind(name) == kind]


def of_kind(kind: str) -> Q:
    """Return the condition that a series measures *kind*."""
    return Q(kind=kind) | Q(kind="", probe__in=probes_of_kind(kind))


def _kind(name: str) -> str:
    if name == REPORTED_PROBE:
        return "application"  # unless the series says otherwise
    try:
        return probes.load(name).kind
    except Exception:  # noqa: BLE001  # the file of the probe is broken: each of its runs reports that
        return ""
