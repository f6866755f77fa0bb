"""Mean times between failures and to repair, of every series or of a selection of runs as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.core.exceptions import EmptyResultSet
from django.db import connection

from monitor.models.run import State

if TYPE_CHECKING:
    from monitor.models.run import RunQuerySet

# One row per judged run. The time from a run to the next one of its series has the outcome of the former.
_SUMS = """
SELECT {key} AS key,
    count(*) FILTER (WHERE NOT has_passed AND passed_before) AS outages,
    coalesce(sum(next_slot - slot) FILTER (WHERE has_passed), '0') AS operating,
    count(*) FILTER (WHERE has_passed AND NOT passed_before) AS repairs,
    coalesce(sum(next_slot - slot) FILTER (WHERE NOT has_passed AND slot < last_passed), '0') AS repairing
FROM (
    SELECT series_id, slot, has_passed,
        lead(slot) OVER in_order AS next_slot,
        lag(has_passed) OVER in_order AS passed_before,
        max(slot) FILTER (WHERE has_passed) OVER (PARTITION BY series_id) AS last_passed
    FROM (SELECT series_id, slot, state = %s AS has_passed FROM ({judged}) AS judged) AS run
    WINDOW in_order AS (PARTITION BY series_id ORDER BY slot)
) AS neighbours
GROUP BY key
"""


@dataclass(frozen=True)
class RepairTimes:
    """Sums over the outages of series; an outage lasts from a failed run to the next one that passed.

    Attributes:
        outages: how many began after a passed run.
        operating: the time that began with a passed run, each until the next run of the series.
        repairs: how many outages ended.
        repairing: the sum of their lengths.
    """

    outages: int = 0
    operating: timedelta = timedelta()
    repairs: int = 0
    repairing: timedelta = timedelta()

    @property
    def between(self) -> timedelta | None:
        """The mean time between failures: operating time per outage; None if none began."""
        return self.operating / self.outages if self.outages else None

    @property
    def to_repair(self) -> timedelta | None:
        """The mean time to repair: the mean length of the outages that ended; None if none has."""
        return self.repairing / self.repairs if self.repairs else None


def repair_times(judged: RunQuerySet) -> RepairTimes:
    """Return the times of all series together, of *judged* runs: those that passed, failed or broke.

    Outages are measured from slot to slot: a series that runs once an hour knows them to an hour. One that
    began before the first of the runs begins with that run.
    """
    return next((times for _, times in _sums(judged, "0")), RepairTimes())


def repair_times_by_series(judged: RunQuerySet) -> Mapping[int, RepairTimes]:
    """Return the times by primary key of the series."""
    return dict(_sums(judged, "series_id"))


def _sums(judged: RunQuerySet, key: str) -> Iterator[tuple[int, RepairTimes]]:
    columns = judged.order_by().values("series_id", "slot", "state")
    try:
        sql, parameters = columns.query.sql_with_params()
    except EmptyResultSet:  # a condition that no row can meet, such as a series in no list
        return
    with connection.cursor() as cursor:
        cursor.execute(_SUMS.format(key=key, judged=sql), [State.PASSED, *parameters])
        for row_key, *sums in cursor.fetchall():
            yield row_key, RepairTimes(*sums)
