"""The segment of a series' next run, before that run: forecasts from elsewhere belong to its metrics."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Max

from monitor.depot.series.current_segment import store_current_segments
from monitor.models import Metric, Segment

if TYPE_CHECKING:
    from monitor.models.segment import SegmentIdentity


def next_metric(series: int, identity: SegmentIdentity, name: str, unit: str, now: datetime) -> int:
    """Return the key of the metric *name* that the next run of *series*, with *identity*, will measure.

    A missing segment is created, as if it began *now*, and a missing metric too: ingest finds both when the
    first run is reported.
    """
    segment = _segment(series, identity, now)
    metric, is_new = Metric.objects.get_or_create(segment=segment, name=name, defaults={"unit": unit})
    if is_new:
        store_current_segments([series])
    return metric.pk


def _segment(series: int, identity: SegmentIdentity, now: datetime) -> Segment:
    own = Segment.objects.filter(series=series)
    while (known := own.filter(fingerprint=identity.fingerprint).first()) is None:
        last = own.aggregate(last=Max("number"))["last"] or 0
        new = Segment(
            series_id=series,
            number=last + 1,
            fingerprint=identity.fingerprint,
            began_at=now,
            probe=identity.probe,
            probe_version=identity.probe_version,
            parameters=dict(identity.parameters),
            bindings={role: list(names) for role, names in identity.bindings.items()},
        )
        # A concurrent transaction may have used the number.
        Segment.objects.bulk_create([new], ignore_conflicts=True)
    return known
