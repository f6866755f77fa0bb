"""Find the failing series that an open incident explains before the incident affects them.

An incident affects a series from its second failure in a row on. The first failure may have its cause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from monitor.analysis.attribution.attribute import parts_of_series
from monitor.analysis.attribution.culprits import PartKind
from monitor.core.db import binary
from monitor.models.incident import MONITOR

_LOOK_BACK = timedelta(days=7)
_NEWEST = b"""
SELECT series.id, run.signature_id, site.name
FROM unnest(%(series)b::bigint[]) AS series (id)
CROSS JOIN LATERAL (
    SELECT signature_id, failed_resource FROM monitor_run
    WHERE series_id = series.id AND slot > %(since)b AND slot <= %(now)b
        AND state IN ('passed', 'failed', 'timed_out', 'broken')
    ORDER BY slot DESC LIMIT 1
) AS run
JOIN monitor_resource AS resource ON resource.name = run.failed_resource
JOIN monitor_site AS site ON site.id = resource.site_id
WHERE run.signature_id IS NOT NULL
"""


class IncidentPart(NamedTuple):
    """What of an open incident says which failures it explains, as in ``Incident``; no signature is 0."""

    pk: int
    kind: str
    name: str
    condition: str
    signature: int


def explaining_incidents(
    series: Collection[int], incidents: Iterable[IncidentPart], now: datetime
) -> dict[int, int]:
    """Return by series (keys) the one of the open *incidents* that has the cause of its newest failure.

    The cause is the same if a verdict on the failed runs names the part at fault, or if the newest run failed
    at the site of the incident by its signature.
    """
    incidents = [each for each in incidents if not each.condition and each.kind != MONITOR]
    by_part = {(each.kind, each.name): each.pk for each in incidents}
    by_text = {
        (each.name, each.signature): each.pk
        for each in incidents
        if each.name and each.kind not in {PartKind.EDGE, PartKind.REPORTER}  # others have the name of a site
    }
    if not series or not by_part:
        return {}
    explained = _by_text(series, by_text, now)
    for key, parts in parts_of_series(series).items():
        named = [by_part[part] for part in parts if part in by_part]
        if named:
            explained[key] = named[-1]
    return explained


def _by_text(
    series: Collection[int], by_text: Mapping[tuple[str, int], int], now: datetime
) -> dict[int, int]:
    keys = np.array(sorted(series), dtype=np.int64)
    parameters = {"series": keys, "since": now - _LOOK_BACK, "now": now}
    with binary.cursor() as cursor:
        # Not prepared: a plan for any time reads all partitions.
        rows = cursor.execute(_NEWEST, parameters, binary=True, prepare=False).fetchall()
    return {key: by_text[site, signature] for key, signature, site in rows if (site, signature) in by_text}
