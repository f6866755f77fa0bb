"""What the agent tells the server of itself: the JSON of an exchange, before it is disclosed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reporters.remote import VERSION, this_archive
from reporters.remote.agent.notices import Notice
from reporters.remote.clock import ClockOffset
from reporters.report import rfc3339
from reporters.spool.chains import ChainHead
from reporters.spool.status import SpoolStatus

_MAX_CHAINS = 1000


@dataclass(frozen=True)
class AgentActivity:
    """What only the main thread knows."""

    started_at: datetime
    in_flight: Sequence[str] = ()
    waiting: int = 0


@dataclass(frozen=True)
class HeldAssignment:
    """Version 0 is none. *error* says why the newest assignment was refused; empty if it was not."""

    version: int
    error: str
    has_pending: bool


@dataclass(frozen=True)
class SpoolState:
    status: SpoolStatus
    heads: Sequence[ChainHead]


def exchange_document(
    agent: AgentActivity,
    assignment: HeldAssignment,
    policy: Mapping[str, Any],
    spool: SpoolState,
    offset: ClockOffset | None,
    notices: Sequence[Notice],
) -> dict[str, Any]:
    """Return the document, without the time at which it is sent."""
    waiting = spool.status
    return {
        "started_at": rfc3339(agent.started_at),
        "hostname": os.uname().nodename,
        "archive_sha256": this_archive.sha256(),
        "version": VERSION,
        "python": sys.version.split()[0],
        "assignment": {"version": assignment.version, "error": assignment.error},
        "policy": dict(policy),
        "pending_approvals": int(assignment.has_pending),
        "in_flight": list(agent.in_flight),
        "spool": {
            "records": waiting.records,
            "bytes": waiting.bytes,
            "oldest_at": rfc3339(waiting.oldest_at) if waiting.oldest_at else None,
            "dropped_records": waiting.dropped_records,
        },
        "chains": [
            {"chain": str(head.chain), "next": head.next, "head": head.head}
            for head in spool.heads[-_MAX_CHAINS:]
        ],
        "clock": {
            "offset_seconds": offset and offset.offset_seconds,
            "bound_seconds": offset and offset.bound_seconds,
        },
        "messages": [notice.document() for notice in notices],
    }
