"""Deliver what the home reporter has spooled: a report leaves the spool only when the depot has it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from monitor.ingest.service import Receipt, ingest, ingest_all
from monitor.ledger import transitions
from monitor.ledger.claim import claim_freed
from monitor.models import Run
from monitor.models.run import State
from monitor.worker.dispatch import dispatch
from reporters.spool import Spool, SpoolError

if TYPE_CHECKING:
    import uuid

logger = logging.getLogger(__name__)
BATCH = 500  # reports are ingested together
GATHER_SECONDS = 0.05  # of those that come one upon the other: few cost the depot as much as many


def spool() -> Spool:
    return Spool(settings.VAR_DIR / "spool" / "home")


def is_spooled(run: uuid.UUID) -> bool:
    """Whether the report of *run* is in the spool: it has been run."""
    try:
        return run in spool()
    except SpoolError as error:
        logger.error("%s", error)
        return False


def spool_report(run: uuid.UUID, body: bytes) -> None:
    """Spool the report of *run*. A spool that is full is no reason to lose it: the depot takes it, then.

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


def deliver() -> int:
    """Ingest what is spooled, and let begin what there is room for then; how many reports left the spool.

    While the depot is away they stay. One process delivers at a time; what others spool meanwhile it takes
    along, many together. What is wrong with the spool is logged and stops nobody: runs go on without it.
    """
    try:
        return _deliver_all(spool())
    except SpoolError as error:
        logger.error("%s", error)
        return 0


def _deliver_all(waiting: Spool) -> int:
    delivered = 0
    try:
        while waiting.any():  # also what was spooled by somebody who found this one busy
            with waiting.exclusive() as is_locked:
                if not is_locked:
                    break
                if delivered:
                    time.sleep(GATHER_SECONDS)
                delivered += _deliver_some(waiting)
            dispatch(claim_freed(timezone.now()))
    except (OperationalError, InterfaceError) as error:
        logger.warning("the depot is away, reports stay in the spool: %s", error)
        connection.close()
        waiting.sync()
    return delivered


def _deliver_some(waiting: Spool) -> int:
    entries = list(waiting.pending(BATCH))
    receipts = ingest_all([entry.body for entry in entries])
    for entry, receipt in zip(entries, receipts, strict=True):
        if receipt.accepted:
            waiting.remove(entry.run)
        else:
            _refused(entry.run, receipt)
            waiting.set_aside(entry.run, receipt.error)
    return len(entries)


def _refused(run: uuid.UUID, receipt: Receipt) -> None:
    """The report will never be taken: its run ends with that reason, instead of being run again."""
    logger.error("the report of %s is refused: %s", run, receipt.error)
    reason = f"its report was refused: {receipt.error}"
    transitions.move(
        Run.objects.all(),
        [run],
        State.BROKEN,
        cause="its report was refused",
        reason=reason,
        ended_at=timezone.now(),
    )
