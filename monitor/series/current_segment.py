"""Keep which segment the next run of a series belongs to, so that who asks for it finds it ready."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db import connection

from monitor.db import binary
from monitor.models import CurrentSegment, Series
from monitor.models.current_segment import SETUP, path_of, resources_of
from monitor.series.segments import current_bindings, current_segments

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

AT_ONCE = 2000  # series
_SETUPS = f"SELECT series.id, {SETUP}, series.probe FROM monitor_series AS series WHERE series.id = ANY (%s)"  # noqa: S608
_UNKEPT = """
SELECT series.id FROM monitor_series AS series
WHERE series.probe = %(application)b AND NOT EXISTS (
    SELECT FROM monitor_currentsegment AS kept WHERE kept.series_id = series.id)
"""


def store_current_segments(series: Collection[int]) -> dict[int, int | None]:
    """Work it out for *series*, by key, and keep it; None where the next run begins a new segment. Those
    that are not there are left out.

    What it is told from is read before: if that changes meanwhile, what is kept is seen to be behind.
    """
    wanted = sorted(set(series))
    found: dict[int, int | None] = {}
    for begin in range(0, len(wanted), AT_ONCE):
        found |= _kept(wanted[begin : begin + AT_ONCE])
    return found


def store_missing_segments(application: str) -> int:
    """Keep it of those series of *application* of which nothing is kept yet; how many."""
    with binary.cursor() as cursor:
        new = [key for (key,) in cursor.execute(_UNKEPT, {"application": application})]
    return len(store_current_segments(new))


def _kept(series: list[int]) -> dict[int, int | None]:
    with connection.cursor() as cursor:
        cursor.execute(_SETUPS, [series])
        setups = {key: (setup, probe) for key, setup, probe in cursor.fetchall()}
    these: SeriesQuerySet = Series.objects.filter(pk__in=setups)
    segments, bound = current_segments(these), current_bindings(setups)
    rows = [
        CurrentSegment(
            series_id=key,
            segment_id=segments.get(key),
            setup=setup,
            application=probe,
            path=path_of(bound.get(key, {})),
            resources=resources_of(bound.get(key, {})),
        )
        for key, (setup, probe) in sorted(setups.items())  # who writes at once never waits in a circle
    ]
    CurrentSegment.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["series"],
        update_fields=["segment", "setup", "application", "path", "resources"],
    )
    return {row.series_id: row.segment_id for row in rows}
