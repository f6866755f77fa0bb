"""``supervisor.json``: what the supervisor says about its services, for the pages and for people."""

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
    """One service. *pid* is the program's own; *last_exit* says in words how it last ended, if it did."""

    state: str
    since: datetime
    pid: int | None = None
    restarts: int = 0
    last_exit: str | None = None


@dataclass(frozen=True)
class SupervisorStatus:
    """Everything that one supervisor looks after, in the order in which it starts."""

    pid: int
    written_at: datetime
    services: Mapping[str, ServiceStatus]


def write_status(file: Path, status: SupervisorStatus) -> None:
    """Replace *file* in one step: whoever reads it finds the old or the new, never a half."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    text = json.dumps(asdict(status), default=datetime.isoformat, indent=1)
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(file)


def read_status(file: Path) -> SupervisorStatus | None:
    """What the supervisor last wrote, or None: none ever ran. It may be dead: see ``lock.holder``."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    services = {
        name: ServiceStatus(**{**fields, "since": datetime.fromisoformat(fields["since"])})
        for name, fields in document["services"].items()
    }
    return SupervisorStatus(document["pid"], datetime.fromisoformat(document["written_at"]), services)
