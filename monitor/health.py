"""Check the health of the service itself and describe problems, for pages and health probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django import db
from django.conf import settings
from django.db import DatabaseError, connection
from kombu.exceptions import OperationalError

from monitor.celery import app
from monitor.core.units import coarse_seconds
from monitor.models import Heartbeat, Reporter, Series
from monitor.models.reporter import HOME
from monitor.operations.supervisor.status import ServiceStatus, read_status
from monitor.runs.ingest.disk_guard import gauge
from monitor.runs.ledger.heartbeats import HOME_REPORTER, SCHEDULER, SILENT_AFTER

_SILENT = {
    SCHEDULER: "Scheduler: no heartbeat for {age}; no new runs are started.",
    HOME_REPORTER: "Home reporter: no heartbeat for {age}; due runs wait.",
}
_NEVER_SEEN = {
    SCHEDULER: "Scheduler: never seen; no runs are started.",
    HOME_REPORTER: "Home reporter: never seen; due runs wait.",
}


@dataclass(frozen=True)
class HealthProblem:
    """A component of the service that does not work, and a sentence that describes the problem."""

    component: str
    text: str


DEPOT_UNAVAILABLE = HealthProblem(
    "depot", "Database (PostgreSQL) unreachable. Reports wait in the spools of the reporters."
)


def problems(now: datetime) -> list[HealthProblem]:
    """Return the problems of the service at *now*.

    While the depot is unavailable, the list contains only this problem.
    """
    try:
        silent, full = _silent_components(now), _low_space()
    except (db.OperationalError, db.InterfaceError):
        return [DEPOT_UNAVAILABLE]
    return [*full, *silent, *_restarting(supervised())]


def components(problems: Sequence[HealthProblem]) -> str:
    """Return the components that have *problems*, as one word; the texts of problems change with the time."""
    return "+".join(sorted({problem.component for problem in problems}))


def supervised() -> Mapping[str, ServiceStatus]:
    """Return the services of the supervisor by name; empty if the status of the supervisor cannot be read."""
    try:
        status = read_status(settings.VAR_DIR / "run" / "supervisor.json")
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return status.services if status else {}


def depot_problem() -> HealthProblem | None:
    """Return the problem that the depot does not answer; None if the depot answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return DEPOT_UNAVAILABLE
    return None


def broker_problem() -> HealthProblem | None:
    """Return the problem that the broker does not answer within a second; None if the broker answers."""
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=1)
    except (OperationalError, OSError):
        return HealthProblem("broker", "Broker (Redis protocol) unreachable. Due runs stay in the ledger.")
    return None


def _low_space() -> list[HealthProblem]:
    space = gauge.space()
    if space is None or space.suffices:
        return []
    return [HealthProblem("depot", f"Reports are refused: {space}. They wait in the reporters' spools.")]


def _silent_components(now: datetime) -> list[HealthProblem]:
    heartbeats = dict(Heartbeat.objects.values_list("name", "seen_at"))
    missing = [component for component in _NEVER_SEEN if component not in heartbeats]
    awaited = _awaited(now) if missing else set()
    never_seen = [HealthProblem(each, _NEVER_SEEN[each]) for each in missing if each in awaited]
    return never_seen + [
        HealthProblem(
            component, text.format(age=coarse_seconds((now - heartbeats[component]).total_seconds()))
        )
        for component, text in _SILENT.items()
        if component in heartbeats and now - heartbeats[component] > SILENT_AFTER
    ]


def _awaited(now: datetime) -> set[str]:
    """Return the components that scheduled series have needed for longer than they may be silent."""
    series = Series.objects.filter(enabled=True, created_at__lte=now - SILENT_AFTER).exclude(schedule="")
    if not series.exists():
        return set()
    home = Reporter.objects.filter(name=HOME).first()  # by key: the planner knows how many series it has
    has_series = home is not None and series.filter(reporter=home).exists()
    return {SCHEDULER, HOME_REPORTER} if has_series else {SCHEDULER}


def _restarting(services: Mapping[str, ServiceStatus]) -> list[HealthProblem]:
    return [
        HealthProblem(name, f"{name} is restarting (attempt {status.restarts}).")
        for name, status in services.items()
        if status.state == "restarting"
    ]
