"""The SQL of attribution and incidents: the latest results of every series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from monitor.core.db import binary

# A failed run that is not classified yet is left to the next call.
_LATEST = b"""
SELECT run.id, slot, series.id AS series_id, state = 'passed' AS has_passed, stage, signature_id,
    state IN ('failed', 'timed_out') AND coalesce(counts_against_site, false) AS counts_against_site,
    coalesce(site.name, '') AS site
FROM monitor_series AS series
CROSS JOIN LATERAL (
    SELECT id, slot, state, stage, failed_resource, signature_id FROM monitor_run
    WHERE series_id = series.id AND slot > %(since)b AND slot <= %(now)b
        AND (state = 'passed' OR (state IN ('failed', 'timed_out', 'broken') AND signature_id IS NOT NULL))
    ORDER BY slot DESC LIMIT %(most)b::int
) AS run
LEFT JOIN monitor_failuresignature AS signature ON signature.id = signature_id
LEFT JOIN monitor_resource AS resource ON resource.name = failed_resource
LEFT JOIN monitor_site AS site ON site.id = resource.site_id
WHERE series.enabled
ORDER BY slot
"""


@dataclass(frozen=True)
class LatestResult:
    """A run that passed (without a signature), or failed in *stage* at *site* (empty: unknown)."""

    id: UUID
    slot: datetime
    series_id: int
    has_passed: bool
    stage: str
    signature_id: int | None
    counts_against_site: bool
    site: str


def latest_results(since: datetime, now: datetime, most: int) -> list[LatestResult]:
    """Return the latest *most* results of each enabled series with slots in (*since*, *now*], by slot."""
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(LatestResult)
        parameters = {"since": since, "now": now, "most": most}
        return cursor.execute(_LATEST, parameters, binary=True).fetchall()
