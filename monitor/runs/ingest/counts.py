"""Counters of ingest: receipts, and group commits of reports that are sent by HTTP."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from monitor.core.counters import counters

if TYPE_CHECKING:
    from monitor.runs.ingest.receipt import ReportReceipt

RECEIPTS = "gridcast_ingest_reports_total"
COMMITS = "gridcast_ingest_group_commits_total"
COMMIT_REQUESTS = "gridcast_ingest_group_commit_requests_total"
COMMIT_SECONDS = "gridcast_ingest_group_commit_seconds_total"


def count_receipts(receipts: Iterable[ReportReceipt]) -> None:
    tally = Tally(_kind(receipt) for receipt in receipts)
    counters.add_all([((RECEIPTS, kind), float(number)) for kind, number in tally.items()])


@contextmanager
def counted_commit(requests: int) -> Iterator[None]:
    """Count a group commit of *requests* requests, also one that fails."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - begun
        counters.add_all(
            [((COMMITS,), 1.0), ((COMMIT_REQUESTS,), float(requests)), ((COMMIT_SECONDS,), seconds)]
        )


def _kind(receipt: ReportReceipt) -> str:
    if receipt.conflict:
        return "conflict"
    if not receipt.accepted:
        return "refused"
    return "duplicate" if receipt.duplicate else "accepted"
