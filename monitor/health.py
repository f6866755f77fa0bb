"""Is the service itself well? Says in words what is not, for pages and probes of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, connection
from kombu.exceptions import OperationalError

from monitor.celery import app
from monitor.ingest.disk_guard import gauge
from monitor.ledger.heartbeats import SILENT_AFTER
from monitor.models import Heartbeat, Run
from monitor.supervisor.status import ServiceStatus, read_status

PARTS = {
    "beat": "The scheduler has not been heard of for {seconds:.0f} s: no new runs are started.",
    "reporter.home": "The home reporter has not been heard of for {seconds:.0f} s: due runs wait for it.",
}


@dataclass(frozen=True)
class HealthProblem:
    """Something of ours that does not work, in a sentence for whoever reads a page."""

    part: str
    text: str


DEPOT_UNAVAILABLE = HealthProblem(
    "depot", "The depot (PostgreSQL) does not answer. Reports wait in the reporters' spools."
)


def problems(now: datetime) -> list[HealthProblem]:
    """Everything that is wrong with the service at *now*; the depot's absence hides the rest."""
    try:
        silent, full = _silent_parts(now), _no_room()
    except DatabaseError:
        return [DEPOT_UNAVAILABLE]
    return [*full, *silent, *_restarting(supervised())]


def supervised() -> Mapping[str, ServiceStatus]:
    """What the supervisor says of its services; nothing where there is none, or it cannot be read."""
    try:
        status = read_status(settings.VAR_DIR / "run" / "supervisor.json")
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return status.services if status else {}


def depot_problem() -> HealthProblem | None:
    """Ask the depot."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return DEPOT_UNAVAILABLE
    return None


def broker_problem() -> HealthProblem | None:
    """Ask the broker; it must answer within a second."""
    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=1)
    except (OperationalError, OSError):
        return HealthProblem(
            "broker", "The broker (Redis protocol) does not answer. Due runs stay in the ledger."
        )
    return None


def _no_room() -> list[HealthProblem]:
    room = gauge.space()
    if room is None or room.suffices:
        return []
    return [HealthProblem("depot", f"No reports are taken: {room}. They wait in the reporters' spools.")]


def _silent_parts(now: datetime) -> list[HealthProblem]:
    heard = dict(Heartbeat.objects.values_list("name", "seen_at"))
    if not heard and not Run.objects.exists():
        return []  # nothing has been started yet: that is not a fault
    return [
        HealthProblem(part, text.format(seconds=(now - heard[part]).total_seconds()))
        for part, text in PARTS.items()
        if part in heard and now - heard[part] > SILENT_AFTER
    ]


def _restarting(services: Mapping[str, ServiceStatus]) -> list[HealthProblem]:
    """What the supervisor is restarting, where one is in charge."""
    return [
        HealthProblem(name, f"{name} is being restarted (attempt {status.restarts}).")
        for name, status in services.items()
        if status.state == "restarting"
    ]
