"""Deliver what the home reporter has spooled: a report leaves the spool only when the depot has it."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from monitor.services.ingest import ingest
from reporters.spool import Spool

logger = logging.getLogger(__name__)


def spool() -> Spool:
    return Spool(settings.VAR_DIR / "spool" / "home")


def deliver() -> int:
    """Ingest every spooled report; how many left the spool. While the depot is away they stay."""
    waiting = spool()
    delivered = 0
    for entry in waiting.pending():
        try:
            receipt = ingest(entry.body)
        except (OperationalError, InterfaceError) as error:
            logger.warning("the depot is away, %s stays in the spool: %s", entry.run, error)
            connection.close()
            return delivered
        if receipt.accepted:
            waiting.remove(entry.run)
        else:
            waiting.set_aside(entry.run, receipt.error)
        delivered += 1
    return delivered
