"""Limit the open chains of a reporter, and its records without a stored report.

A hostile agent could name new chains, or send reports that are refused, without end: each has a row.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.core.db import binary

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

logger = logging.getLogger(__name__)
MAX_OPEN_CHAINS = 10_000  # an agent starts a chain when it starts, and declares at most 2,000 at once
DAY = timedelta(days=1)
MAX_EXTRA_RECORDS = 50_000  # a day: those of 50 hourly series in 40 days
# An open chain lacks its last declared record, or any record. Only new chains are worth the count.
_COUNT = """
WITH fresh AS (
    SELECT count(*) AS chains FROM unnest(%b::uuid[]) AS named (uuid)
    WHERE NOT EXISTS (SELECT FROM monitor_chain WHERE uuid = named.uuid)
)
SELECT fresh.chains, CASE WHEN fresh.chains > 0 THEN (
    SELECT count(*) FROM monitor_chain AS chain JOIN monitor_reporter AS reporter
        ON reporter.id = chain.reporter_id AND reporter.name = %b
    WHERE NOT EXISTS (
        SELECT FROM monitor_chainrecord AS record
        WHERE record.chain_id = chain.id AND record.sequence = greatest(chain.declared_next, 1) - 1)
) ELSE 0 END FROM fresh
"""


_COUNT_EXTRA = """
UPDATE monitor_reporter SET paced_until = greatest(paced_until, %b) + %b
WHERE name = %b RETURNING paced_until - %b
"""


class TooManyChains(Exception):
    """The reporter has too many open chains to start another one."""


def require_room(reporter: str, chains: Iterable[uuid.UUID]) -> None:
    """Check that *reporter* may start those of *chains* that are new. Received chains do not count.

    Raises:
        TooManyChains: it would have more than ``MAX_OPEN_CHAINS`` open chains; this is logged.
    """
    with binary.cursor() as cursor:
        ((fresh, opened),) = cursor.execute(_COUNT, [list(set(chains)), reporter]).fetchall()
    if fresh and fresh + opened > MAX_OPEN_CHAINS:
        logger.warning(
            "the reporter %r may start no chain: it names %d new ones, and the ends of %d have not arrived",
            reporter, fresh, opened,
        )  # fmt: skip
        raise TooManyChains(
            f"reporter {reporter} names {fresh} new chains, and the last records of {opened} chains have not"
            f" arrived; at most {MAX_OPEN_CHAINS} may be open: deliver the records of the chains first"
        )


class TooManyExtraRecords(Exception):
    """The reporter sends too many records without a stored report; it is to wait for *retry_seconds*."""

    def __init__(self, reporter: str, retry_seconds: int) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(
            f"reporter {reporter} sent more than {MAX_EXTRA_RECORDS} notes, duplicates and reports that were"
            " refused or conflicting in a day: assign to it the series that it reports"
        )


def count_extra(reporter: str, records: int) -> None:
    """Count *records* of *reporter* that are stored without a report being stored as the result of its run.

    Raises:
        TooManyExtraRecords: they are more than ``MAX_EXTRA_RECORDS`` a day; this is logged.
    """
    if not records:
        return
    now = timezone.now()
    with binary.cursor() as cursor:
        lasts = records * (DAY / MAX_EXTRA_RECORDS)
        ((ahead,),) = cursor.execute(_COUNT_EXTRA, [now, lasts, reporter, now + DAY]).fetchall()
    if ahead > timedelta(0):
        logger.warning("the reporter %r sends too many records without a stored report", reporter)
        raise TooManyExtraRecords(reporter, round(ahead.total_seconds()) + 1)
