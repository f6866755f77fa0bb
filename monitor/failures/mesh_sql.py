"""The SQL of attribution: the latest results of every series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from monitor.db import binary

# A failed run whose cause does not count against a site says nothing about parts of the grid. One that is not
# classified yet is left to the next call.
_LATEST = b"""
SELECT run.id, slot, series_id, state = 'passed' AS has_passed, stage, coalesce(site.name, '') AS site
FROM (
    SELECT run.id, slot, series_id, state, stage, failed_resource,
        row_number() OVER (PARTITION BY series_id ORDER BY slot DESC) AS number
    FROM monitor_run AS run
    LEFT JOIN monitor_failuresignature AS signature ON signature.id = run.signature_id
    WHERE slot > %(since)b AND slot <= %(now)b
        AND (state = 'passed' OR (state IN ('failed', 'timed_out') AND signature.counts_against_site))
) AS run
LEFT JOIN monitor_resource AS resource ON resource.name = failed_resource
LEFT JOIN monitor_site AS site ON site.id = resource.site_id
WHERE number <= %(most)b::int
ORDER BY slot
"""


@dataclass(frozen=True)
class LatestResult:
    """A run that passed, or failed in *stage* at *site* (empty: unknown)."""

    id: UUID
    slot: datetime
    series_id: int
    has_passed: bool
    stage: str
    site: str


def latest_results(since: datetime, now: datetime, most: int) -> list[LatestResult]:
    """Return the latest *most* results of each series with slots after *since*, up to *now*."""
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(LatestResult)
        parameters = {"since": since, "now": now, "most": most}
        return cursor.execute(_LATEST, parameters, binary=True).fetchall()
