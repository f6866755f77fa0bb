"""Limit the open chains of a reporter: a hostile agent could name new chains without end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from monitor.db import binary

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

logger = logging.getLogger(__name__)
MAX_OPEN_CHAINS = 10_000  # an agent starts a chain when it starts, and declares at most 2,000 at once
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
