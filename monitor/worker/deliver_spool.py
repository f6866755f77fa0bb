"""Deliver the home reporter's spool: a report leaves the spool only after the depot has committed it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from monitor.ingest.service import ReportReceipt, ingest, ingest_all
from monitor.ledger import transitions
from monitor.ledger.claim import claim_freed
from monitor.models import Run
from monitor.models.run import State
from monitor.worker.dispatch import dispatch
from reporters.spool import FileSpool, FileSpoolError

if TYPE_CHECKING:
    import uuid

logger = logging.getLogger(__name__)
MAX_BATCH_REPORTS = 500
BATCH_PAUSE_SECONDS = 0.05  # lets reports accumulate: small and large batches cost the depot about the same


def spool() -> FileSpool:
    return FileSpool(settings.VAR_DIR / "spool" / "home")


def is_spooled(run: uuid.UUID) -> bool:
    """Return whether the report of *run* waits in the spool; False if the spool cannot be read."""
    try:
        return run in spool()
    except FileSpoolError as error:
        logger.error("%s", error)
        return False


def spool_report(run: uuid.UUID, body: bytes) -> None:
    """FileSpool the report of *run*; if the spool is full or broken, ingest the report at once.

    Raises:
        FileSpoolError: neither the spool nor the depot accepted the report.
    """
    try:
        spool().put(run, body)
    except FileSpoolError as error:
        logger.error("%s; the report is ingested directly", error)
        try:
            receipt = ingest(body)
        except (OperationalError, InterfaceError):
            connection.close()
            raise error from None
        if not receipt.accepted:
            _end_refused(run, receipt)


def deliver() -> int:
    """Ingest the spooled reports, and claim runs for the freed capacity; return how many left the spool.

    While the depot is unavailable, reports stay in the spool. One process delivers at a time; it also
    delivers reports that other processes spool meanwhile. Errors of the spool are logged, not raised.
    """
    delivered = 0
    try:
        source = spool()
        try:
            while source.any():  # includes reports spooled while this process held the lock
                with source.exclusive() as is_ours:
                    if not is_ours:
                        break
                    if delivered:
                        time.sleep(BATCH_PAUSE_SECONDS)
                    delivered += _deliver_batch(source)
                dispatch(claim_freed(timezone.now()))
        except (OperationalError, InterfaceError) as error:
            logger.warning("the depot is unavailable, reports stay in the spool: %s", error)
            connection.close()
            source.sync()
    except FileSpoolError as error:
        logger.error("%s", error)
    return delivered


def _deliver_batch(source: FileSpool) -> int:
    reports = list(source.pending(MAX_BATCH_REPORTS))
    receipts = ingest_all([report.body for report in reports])
    for report, receipt in zip(reports, receipts, strict=True):
        if receipt.accepted:
            source.remove(report.run)
        else:
            _end_refused(report.run, receipt)
            source.set_aside(report.run, receipt.error)
    return len(reports)


def _end_refused(run: uuid.UUID, receipt: ReportReceipt) -> None:
    """End *run* as broken, with the reason in *receipt*.

    The report will never be accepted, so running the run again would not help.
    """
    logger.error("the depot refuses the report of %s, which ends the run as broken: %s", run, receipt.error)
    transitions.move(
        Run.objects.all(),
        [run],
        State.BROKEN,
        cause="its report was refused",
        reason=f"its report was refused: {receipt.error}",
        ended_at=timezone.now(),
    )
