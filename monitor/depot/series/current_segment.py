"""Store which segment the next run of each series belongs to, for forecast requests to read."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db import connection

from monitor.core.db import binary
from monitor.depot.series.segments import current_bindings, current_segments
from monitor.models import CurrentSegment, Series
from monitor.models.current_segment import SETUP, path_of, resources_of

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

MAX_SERIES = 2000  # per statement
_SETUPS = f"SELECT series.id, {SETUP}, series.probe FROM monitor_series AS series WHERE series.id = ANY (%s)"  # noqa: S608
_NOT_STORED = """
SELECT series.id FROM monitor_series AS series
WHERE series.probe = %(application)b AND NOT EXISTS (
    SELECT FROM monitor_currentsegment AS stored WHERE stored.series_id = series.id)
LIMIT %(at_most)b
"""


def store_current_segments(series: Collection[int]) -> dict[int, int | None]:
    """Compute and store the current segment of each of *series*; return the segments by primary key.

    None means that the next run begins a new segment. Series that do not exist are absent. The setup is read
    before the segment is computed, so that a row is recognised as outdated if the setup changes meanwhile.
    """
    keys = sorted(set(series))
    segments: dict[int, int | None] = {}
    for begin in range(0, len(keys), MAX_SERIES):
        segments |= _store(keys[begin : begin + MAX_SERIES])
    return segments


def store_missing_segments(application: str, *, at_most: int = MAX_SERIES) -> int:
    """Store the current segment of series of the probe *application* that have no stored segment.

    Return the number of stored segments; if it is *at_most*, further ones may be missing.
    """
    with binary.cursor() as cursor:
        parameters = {"application": application, "at_most": at_most}
        missing = [key for (key,) in cursor.execute(_NOT_STORED, parameters)]
    return len(store_current_segments(missing))


def _store(keys: list[int]) -> dict[int, int | None]:
    with connection.cursor() as cursor:
        cursor.execute(_SETUPS, [keys])
        setups = {key: (setup, probe) for key, setup, probe in cursor.fetchall()}
    series: SeriesQuerySet = Series.objects.filter(pk__in=setups)
    segments, bindings = current_segments(series), current_bindings(setups)
    rows = [
        CurrentSegment(
            series_id=key,
            segment_id=segments.get(key),
            setup=setup,
            application=probe,
            path=path_of(bindings.get(key, {})),
            resources=resources_of(bindings.get(key, {})),
        )
        for key, (setup, probe) in sorted(setups.items())  # in one order, so that writers never deadlock
    ]
    CurrentSegment.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["series"],
        update_fields=["segment", "setup", "application", "path", "resources"],
    )
    return {row.series_id: row.segment_id for row in rows}
