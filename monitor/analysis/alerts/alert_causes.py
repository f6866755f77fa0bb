"""Decide which cause an alert has, and with it the incident that it belongs to. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from monitor.models.incident import REPORTER, SERIES

REPORTER_SILENT = "unseen_seconds"  # the condition of a silent reporter


class AlertCause(NamedTuple):
    """The cause of an incident of alerts: the *condition* of the reporter or series *name*."""

    kind: str
    name: str
    condition: str


@dataclass(frozen=True)
class AlertFacts:
    """What decides the cause of an alert.

    Attributes:
        series: the name of its series; empty: it is about the reporter itself.
        reporter: the name of its reporter, or of the reporter of its series.
        has_failed_run: whether a failed run opened it; otherwise reports are missing.
    """

    condition: str
    series: str
    reporter: str
    has_failed_run: bool


def cause_of(alert: AlertFacts, silent: Collection[str]) -> AlertCause | None:
    """Return the cause of *alert*; None: the cause of the failed runs of its series.

    Series without reports share the incident of their reporter if it is one of the *silent* reporters.
    """
    if not alert.series:
        return AlertCause(REPORTER, alert.reporter, alert.condition)
    if alert.has_failed_run:
        return None
    if alert.reporter in silent:
        return AlertCause(REPORTER, alert.reporter, REPORTER_SILENT)
    return of_series(alert)


def of_series(alert: AlertFacts) -> AlertCause:
    """Return the cause of an alert that shares its incident with no other series."""
    return AlertCause(SERIES, alert.series, alert.condition)
