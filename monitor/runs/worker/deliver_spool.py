"""Deliver the spools of this host: a record leaves its spool after the depot has committed it."""

from __future__ import annotations

import logging
import socket
import time
import uuid
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.models import Reporter, Run
from monitor.models.run import State
from monitor.runs.ingest.chains import ingest_parts
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import claim_freed
from monitor.runs.worker.dispatch import dispatch
from reporters import report as wire
from reporters.spool.bounds import Bounds
from reporters.spool.files import SpoolError, spool_errors
from reporters.spool.receipts import Receipt
from reporters.spool.records import REPORT, Part
from reporters.spool.run_index import run_of
from reporters.spool.spool import Spool

logger = logging.getLogger(__name__)
BATCH_PAUSE_SECONDS = 0.05  # lets reports accumulate: small and large batches cost the depot about the same
# The disk is the server's own, and its operator sees it fill up: nothing is dropped before that.
_BOUNDS = Bounds(most_bytes=2**40, most_age_seconds=10 * 365 * 86400.0)


def spool_of(reporter: str) -> Spool:
    """Return this process's view of the spool of *reporter*. Raises SpoolError if it cannot be made."""
    return _opened(settings.VAR_DIR / "spool" / reporter, reporter)


@lru_cache(maxsize=16)
def _opened(directory: Path, reporter: str) -> Spool:
    # Not durable: a report usually waits for a fraction of a second, and the workers of a busy grid would
    # wait for the disk at each of their runs. Reports that have to wait longer are flushed, see ``_deliver``.
    return Spool(directory, reporter, _BOUNDS, is_durable=False)


def spooled_among(runs: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Return those of *runs* whose reports wait in a spool; none if the spools cannot be read."""
    try:
        return {run for spool in _spools() for run in spool.pending_runs(runs)}
    except SpoolError as error:
        logger.error("%s", error)
        return set()


def spool_report(report: wire.Report) -> None:
    """Spool *report*; if the spool is full or broken, ingest the report at once.

    Raises:
        SpoolError: neither the spool nor the depot accepted the report.
    """
    body = wire.to_json(report)
    try:
        spool_of(report.reporter).append(body)
    except SpoolError as error:
        logger.error("%s; the report is ingested directly", error)
        try:
            receipt = ingest(body)
        except (OperationalError, InterfaceError):
            connection.close()
            raise error from None
        if not receipt.accepted:
            _end_refused(report.run, receipt.error)


def deliver() -> int:
    """Ingest the spooled reports, and claim runs for the freed capacity; return how many left the spools.

    While the depot is unavailable, reports stay in the spools. One process of this host delivers a spool at a
    time; it also delivers what other processes spool meanwhile. Errors of the spools are logged, not raised.
    """
    try:
        return sum(map(_deliver, _spools()))
    except SpoolError as error:
        logger.error("%s", error)
        return 0


def _spools() -> list[Spool]:
    """Return the spools of this host: one for each reporter whose queue a worker has served here."""
    root: Path = settings.VAR_DIR / "spool"
    with spool_errors(f"cannot read the spools in {root}"):
        names = [path.name for path in root.iterdir() if path.is_dir()] if root.exists() else []
    return [spool_of(name) for name in sorted(names)]


def lock_name(spool: Spool) -> str:
    """Return what the lock of a delivery is of: the spool of this host."""
    return f"{socket.gethostname()}:{spool.directory}"


def _deliver(spool: Spool) -> int:
    delivered = 0
    try:
        while not spool.is_empty():  # includes reports spooled while this process held the lock
            with session_lock(AdvisoryLock.SPOOL, of=lock_name(spool)) as is_ours:
                if not is_ours:
                    break
                if delivered:
                    time.sleep(BATCH_PAUSE_SECONDS)
                parts = spool.batch()
                delivered += _deliver_batch(spool, parts)
            dispatch(claim_freed(timezone.now()))
            if not parts:
                break
    except (OperationalError, InterfaceError) as error:
        logger.warning("the depot is unavailable, reports stay in the spool: %s", error)
        connection.close()
        spool.sync()
    except SpoolError as error:
        logger.error("%s", error)
    except Reporter.DoesNotExist as error:
        logger.error("the records in %s stay there: %s", spool.directory, error)
    return delivered


def _deliver_batch(spool: Spool, parts: Sequence[Part]) -> int:
    """Ingest *parts* and remove them from *spool*; return how many reports they have."""
    if not parts:
        return 0
    try:
        receipt = ingest_parts(spool.reporter, parts)
        _end_all_refused(parts, receipt)
        acknowledged = spool.acknowledge(receipt)
        for reason in acknowledged.ignored:
            logger.error("ignored in %s: %s", spool.directory, reason)
        if acknowledged.not_kept:
            logger.error(
                "%d refused reports were not kept: remove those in %s/refused that you have read",
                acknowledged.not_kept,
                spool.directory,
            )
    finally:
        spool.release(parts)
    return sum(record.kind == REPORT for part in parts for record in part.records)


def _end_all_refused(parts: Sequence[Part], receipt: Receipt) -> None:
    errors = {(refused.chain, refused.sequence): refused.error for refused in receipt.refused}
    for part in parts:
        for record in part.records:
            error = errors.get((part.chain, record.sequence))
            run = run_of(record) if error is not None else None
            if error is not None and run is not None:
                _end_refused(run, error)


def _end_refused(run: uuid.UUID, error: str) -> None:
    """End *run* as broken, with the reason *error*.

    The report will never be accepted, so running the run again would not help.
    """
    logger.error("the depot refuses the report of %s, which ends the run as broken: %s", run, error)
    transitions.move(
        Run.objects.all(),
        [run],
        State.BROKEN,
        cause="its report was refused",
        reason=f"its report was refused: {error}",
        ended_at=timezone.now(),
    )
