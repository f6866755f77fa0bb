"""The SQL of availability: every slot of many series, with what became of it, as arrays.

PostgreSQL concatenates the slots of a series to one value, whose bytes are the memory of an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db import binary
from monitor.core.db.timestamps import EPOCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

PASSED, NO_RESULT = 0, -1  # codes of slots; every other code is the key of a site
_SLOT = np.dtype([("time", ">i8"), ("code", ">i4")])

# A failed run is a result about the site of the resource at which it failed, if its cause counts against a
# site, and every verdict on it names this site. A run that is not classified yet counts.
_SLOTS = b"""
SELECT run.series_id, string_agg(timestamptz_send(run.slot) || int4send(CASE
    WHEN run.state = 'passed' THEN 0
    WHEN run.state IN ('failed', 'timed_out') AND site.id IS NOT NULL
        AND coalesce(signature.counts_against_site, true)
        AND (verdict.run IS NULL OR (verdict.first = site.name AND verdict.last = site.name))
        THEN site.id::int
    ELSE -1 END), ''::bytea)
FROM monitor_run AS run
LEFT JOIN monitor_failuresignature AS signature ON signature.id = run.signature_id
LEFT JOIN monitor_resource AS resource ON resource.name = run.failed_resource
LEFT JOIN monitor_site AS site ON site.id = resource.site_id
LEFT JOIN (
    SELECT run, min(name) AS first, max(name) AS last FROM (
        SELECT explained.run, CASE WHEN kind IN ('edge', 'reporter') THEN '' ELSE name END AS name
        FROM monitor_attributedrun AS explained JOIN monitor_attribution AS part
            ON part.id = explained.attribution_id
        WHERE explained.slot >= %(since)b::timestamptz AND explained.slot < %(until)b::timestamptz
    ) AS named GROUP BY run
) AS verdict ON verdict.run = run.id
WHERE run.slot >= %(since)b::timestamptz AND run.slot < %(until)b::timestamptz
    AND run.series_id = ANY (%(series)b::bigint[])
GROUP BY run.series_id
"""
_COUNT = """
SELECT count(*) FROM monitor_run
WHERE slot >= %(since)b::timestamptz AND slot < %(until)b::timestamptz
"""


@dataclass(frozen=True)
class Slots:
    """The slots of series, sorted by series and time, in microseconds since 1970.

    *codes*: ``PASSED``, ``NO_RESULT``, or the key of the site at which the run failed.
    """

    series: NDArray[np.int64]
    times: NDArray[np.int64]
    codes: NDArray[np.int64]


def slots_of(series: Sequence[int], since: datetime, until: datetime) -> Slots:
    """Return the slots of *series* in [*since*, *until*)."""
    parameters = {"series": list(series), "since": since, "until": until}
    with binary.cursor() as cursor:
        rows = cursor.execute(_SLOTS, parameters, prepare=False, binary=True).fetchall()
    packed = np.frombuffer(b"".join(value for _, value in rows), _SLOT)
    lengths = [len(value) // _SLOT.itemsize for _, value in rows]
    keys = np.repeat(np.array([key for key, _ in rows], np.int64), lengths)
    times = packed["time"].astype(np.int64) + EPOCH
    order = np.lexsort((times, keys))
    return Slots(keys[order], times[order], packed["code"].astype(np.int64)[order])


def count(since: datetime, until: datetime) -> int:
    """Return how many slots all series have in [*since*, *until*)."""
    (number,) = binary.row(_COUNT, {"since": since, "until": until})
    return int(number)
