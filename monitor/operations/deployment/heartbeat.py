"""Wait until a remote reporter has reported to the server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from monitor.models import Reporter, ReporterStatus

if TYPE_CHECKING:
    from datetime import datetime

_POLL_SECONDS = 0.5


def await_heartbeat(
    reporter: Reporter, version: str, since: datetime, within_seconds: float
) -> ReporterStatus | None:
    """Return the status of *reporter* once its agent of *version* has reported after *since*.

    Return None if it has not within *within_seconds*.
    """
    until = time.monotonic() + within_seconds
    reports = ReporterStatus.objects.filter(reporter=reporter, archive_sha256=version, seen_at__gt=since)
    while (status := reports.first()) is None and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    return status
