"""The SQL of availability: the results of series that say something about a site."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from monitor.db import binary

# Every slot of a series has a row in the ledger, whatever became of it. A result is valid until the second
# slot after its own: one run may be missed. The last rows of a series have no such slot: valid for a day.
_RESULTS = b"""
SELECT series_id, slot, state = 'passed' AS has_passed, coalesce(second_next, slot + '1 day') AS valid_until
FROM (
    SELECT id, series_id, slot, state, failed_resource, signature_id,
        lead(slot, 2) OVER (PARTITION BY series_id ORDER BY slot) AS second_next
    FROM monitor_run
    WHERE series_id = ANY (%(series)b::bigint[]) AND slot >= %(since)b::timestamptz
        AND slot < %(until)b::timestamptz + '1 day'
) AS run
LEFT JOIN monitor_failuresignature AS signature ON signature.id = run.signature_id
WHERE slot < %(until)b::timestamptz AND (
    state = 'passed'
    OR (
        state IN ('failed', 'timed_out') AND failed_resource = ANY (%(resources)b::text[])
        AND coalesce(signature.counts_against_site, true)
        AND NOT EXISTS (
            SELECT FROM monitor_attributedrun AS explained
            JOIN monitor_attribution AS verdict ON verdict.id = explained.attribution_id
            WHERE explained.run = run.id
                AND (verdict.kind IN ('edge', 'reporter') OR verdict.name <> %(site)b::text)
        )
    )
)
ORDER BY series_id, slot
"""


@dataclass(frozen=True)
class SeriesResult:
    """A result of a series: it counts from *slot* until the next one, at most until *valid_until*."""

    series_id: int
    slot: datetime
    has_passed: bool
    valid_until: datetime


def of_site(
    site: str, series: Collection[int], resources: Sequence[str], since: datetime, until: datetime
) -> list[SeriesResult]:
    """Return the results of *series* with slots in [*since*, *until*), by series and slot.

    A failed run counts if it failed at one of *resources* by a cause that counts against a site, unless
    another part of the grid than *site* was found to be at fault; any other failed run says nothing about
    the site.
    """
    parameters = {
        "site": site,
        "series": list(series),
        "resources": list(resources),
        "since": since,
        "until": until,
    }
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(SeriesResult)
        return cursor.execute(_RESULTS, parameters, binary=True).fetchall()
