"""Deliver what the home reporter has spooled: a report leaves the spool only when the depot has it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from monitor.models import Run
from monitor.models.run import State
from monitor.services.ingest import Receipt, ingest
from reporters.spool import Spool, SpoolError

if TYPE_CHECKING:
    import uuid

logger = logging.getLogger(__name__)


def spool() -> Spool:
    return Spool(settings.VAR_DIR / "spool" / "home")


def hand_in(run: uuid.UUID, body: bytes) -> None:
    """Spool the report of *run* and deliver what waits. A spool that is full is no reason to lose a report.

    Raises:
        SpoolError: the spool does not take it, and the depot does not either.
    """
    try:
        spool().put(run, body)
    except SpoolError as error:
        logger.error("%s; it is given to the depot directly", error)
        try:
            receipt = ingest(body)
        except (OperationalError, InterfaceError):
            connection.close()
            raise error from None
        if not receipt.accepted:
            _refused(run, receipt)
    deliver()


def deliver() -> int:
    """Ingest every spooled report; how many left the spool. While the depot is away they stay.

    What is wrong with the spool is logged and stops nobody: runs go on without it.
    """
    delivered = 0
    try:
        waiting = spool()
        for entry in waiting.pending():
            receipt = ingest(entry.body)
            if receipt.accepted:
                waiting.remove(entry.run)
            else:
                _refused(entry.run, receipt)
                waiting.set_aside(entry.run, receipt.error)
            delivered += 1
    except (OperationalError, InterfaceError) as error:
        logger.warning("the depot is away, reports stay in the spool: %s", error)
        connection.close()
    except SpoolError as error:
        logger.error("%s", error)
    return delivered


def _refused(run: uuid.UUID, receipt: Receipt) -> None:
    """The report will never be taken: its run ends with that reason, instead of being run again."""
    logger.error("the report of %s is refused: %s", run, receipt.error)
    reason = f"its report was refused: {receipt.error}"
    Run.objects.all().move(
        [run], State.BROKEN, cause="its report was refused", reason=reason, ended_at=timezone.now()
    )
