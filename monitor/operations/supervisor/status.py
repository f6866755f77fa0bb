"""``supervisor.json``: the status of the supervised services, for the health page and for users."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

STATES = ("starting", "up", "restarting", "stopping", "stopped")


@dataclass(frozen=True)
class ServiceStatus:
    """The status of one service.

    Attributes:
        since: time at which the service entered this state.
        pid: pid of the service, not of its guard.
        last_exit: how the service last ended; None if it has not ended yet.
    """

    state: str
    since: datetime
    pid: int | None = None
    restarts: int = 0
    last_exit: str | None = None


@dataclass(frozen=True)
class SupervisorStatus:
    """The status of each service by name, in start order. *pid* is the pid of the supervisor."""

    pid: int
    written_at: datetime
    services: Mapping[str, ServiceStatus]


def write_status(file: Path, status: SupervisorStatus) -> None:
    """Replace *file* atomically: a reader gets either the old or the new document."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    text = json.dumps(asdict(status), default=datetime.isoformat, indent=1)
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(file)


def read_status(file: Path) -> SupervisorStatus | None:
    """Return the last status written to *file*; None if there is no status.

    The supervisor that wrote the status may have ended: see ``lock.holder``.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    services = {
        name: ServiceStatus(**{**fields, "since": datetime.fromisoformat(fields["since"])})
        for name, fields in document["services"].items()
    }
    return SupervisorStatus(document["pid"], datetime.fromisoformat(document["written_at"]), services)
