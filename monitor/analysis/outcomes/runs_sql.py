"""Count the runs of the ledger: passed runs and outages by series and hour; and read the failed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.analysis.outcomes.blocks import COUNTED, FAILURE, Names, failures
from monitor.analysis.outcomes.in_maintenance import failed_in_maintenance
from monitor.core.db import binary
from monitor.core.db.partitions import months
from monitor.core.db.timestamps import EPOCH, micros
from monitor.models import Run
from monitor.models.run import JUDGED, WITH_SIGNATURE

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from numpy.typing import NDArray

_JUDGED = ", ".join(f"'{state}'" for state in JUDGED)
_FAILED = ", ".join(f"'{state}'" for state in WITH_SIGNATURE)
PASSED_RUN = np.dtype([("series", ">i8"), ("slot", ">i8")])

# The time from a run to the next one of its series counts with the outcome of the former, in the hour of the
# latter; an outage counts where it begins, and its length where it ends. So every hour has its own sums.
_COUNTED = f"""
WITH own AS (
    SELECT series_id, slot, state = 'passed' AS has_passed, lag(slot) OVER by_slot AS before,
        lag(state = 'passed') OVER by_slot AS passed_before
    FROM monitor_run WHERE slot >= %(start)b AND slot < %(end)b AND state IN ({_JUDGED})
        AND {{pruned}} AND {{of_series}}
    WINDOW by_slot AS (PARTITION BY series_id ORDER BY slot)
), run AS (
    SELECT own.series_id, own.slot, own.has_passed, coalesce(own.before, earlier.slot) AS before,
        coalesce(own.passed_before, earlier.has_passed) AS passed_before
    FROM own LEFT JOIN LATERAL (
        SELECT slot, state = 'passed' AS has_passed FROM monitor_run AS former
        WHERE own.before IS NULL AND former.series_id = own.series_id AND former.slot < own.slot
            AND former.state IN ({_JUDGED})
        ORDER BY former.slot DESC LIMIT 1
    ) AS earlier ON true
), counted AS (
    SELECT run.series_id, date_trunc('hour', run.slot, 'UTC') AS hour,
        count(*) FILTER (WHERE has_passed) AS passed,
        count(*) FILTER (WHERE NOT has_passed AND passed_before) AS outages,
        count(*) FILTER (WHERE has_passed AND NOT passed_before) AS repairs,
        sum(run.slot - before) FILTER (WHERE passed_before) AS operating,
        sum(run.slot - outage.began) AS repairing
    FROM run LEFT JOIN LATERAL (
        SELECT min(slot) AS began FROM monitor_run AS failed
        WHERE run.has_passed AND NOT run.passed_before AND failed.series_id = run.series_id
            AND failed.slot < run.slot AND failed.state IN ({_FAILED})
            AND failed.slot > coalesce((
                SELECT slot FROM monitor_run AS former
                WHERE former.series_id = run.series_id AND former.slot < run.slot AND former.state = 'passed'
                ORDER BY former.slot DESC LIMIT 1
            ), '-infinity')
    ) AS outage ON true
    GROUP BY 1, 2
)
SELECT string_agg(int8send(series_id) || timestamptz_send(hour) || int4send(passed::int)
    || int4send(outages::int) || int4send(repairs::int)
    || int8send((extract(epoch FROM coalesce(operating, '0')) * 1000000)::bigint)
    || int8send((extract(epoch FROM coalesce(repairing, '0')) * 1000000)::bigint), ''::bytea)
FROM counted
"""  # noqa: S608  # constants
_PASSED = """
SELECT string_agg(int8send(series_id) || timestamptz_send(slot), ''::bytea) FROM monitor_run
WHERE slot >= %(start)b AND slot < %(end)b AND state = 'passed' AND {pruned}
"""
# The days of the next run, and of the next one that passed: their sums depend on earlier runs.
_DEPENDENT = f"""
SELECT DISTINCT changed.series, date_trunc('day', later.slot, 'UTC')
FROM unnest(%(series)b::bigint[], %(days)b::timestamptz[]) AS changed (series, day)
CROSS JOIN LATERAL (
    (SELECT slot FROM monitor_run WHERE series_id = changed.series AND slot >= day + interval '24 hours'
        AND state IN ({_JUDGED}) ORDER BY slot LIMIT 1)
    UNION ALL
    (SELECT slot FROM monitor_run WHERE series_id = changed.series AND slot >= day + interval '24 hours'
        AND state = 'passed' ORDER BY slot LIMIT 1)
) AS later
"""  # noqa: S608  # constants
_FAILED_HOURS = f"""
SELECT DISTINCT date_trunc('hour', slot, 'UTC') FROM monitor_run
WHERE series_id = %(series)b AND slot >= %(start)b AND slot < %(end)b AND state IN ({_FAILED})
"""  # noqa: S608  # constants


def counted(start: datetime, end: datetime, series: Collection[int] | None = None) -> NDArray[np.void]:
    """Count the runs of *series* (None: of all) with slots from *start* until *end*, as ``COUNTED``."""
    of_series = "true" if series is None else "series_id = ANY (%(series)b::bigint[])"
    statement = _COUNTED.format(pruned=months("slot", start, end), of_series=of_series)
    parameters: dict[str, object] = {"start": start, "end": end}
    if series is not None:
        parameters["series"] = list(series)
    (packed,) = binary.row(statement, parameters)
    return _with_times(packed, COUNTED, "hour")


def passed_runs(start: datetime, end: datetime) -> NDArray[np.void]:
    """Return the series and the slots of all runs that passed from *start* until *end*."""
    if start >= end:
        return np.empty(0, PASSED_RUN)
    (packed,) = binary.row(_PASSED.format(pruned=months("slot", start, end)), {"start": start, "end": end})
    return _with_times(packed, PASSED_RUN, "slot")


def failed_runs(start: datetime, end: datetime, names: Names) -> NDArray[np.void]:
    """Return the runs that failed from *start* until *end*, in order of slots, as ``FAILURE``."""
    if start >= end:
        return np.empty(0, FAILURE)
    runs = Run.objects.filter(slot__gte=start, slot__lt=end, state__in=WITH_SIGNATURE).order_by()
    if not runs.exists():
        return np.empty(0, FAILURE)
    rows = (
        runs.annotate(in_maintenance=failed_in_maintenance(start, end))
        .order_by("slot", "series")
        .values_list("slot", "series", "signature", "failed_resource", "stage", "in_maintenance")
    )
    return failures(((micros(slot), *row) for slot, *row in rows), names)


def dependent_days(changed: Collection[tuple[int, datetime]]) -> list[tuple[int, datetime]]:
    """Return the days, with their series, whose sums depend on the runs of *changed* days (midnights)."""
    if not changed:
        return []
    series, days = zip(*changed, strict=True)
    with binary.cursor() as cursor:
        return cursor.execute(_DEPENDENT.encode(), {"series": list(series), "days": list(days)}).fetchall()


def failed_hours(series: int, start: datetime, end: datetime) -> list[datetime]:
    """Return the hours from *start* until *end* in which runs of *series* failed."""
    with binary.cursor() as cursor:
        rows = cursor.execute(_FAILED_HOURS.encode(), {"series": series, "start": start, "end": end})
        return [hour for (hour,) in rows.fetchall()]


def newest_slot(before: datetime) -> datetime | None:
    """Return the slot of the last run *before* a time that passed or failed."""
    judged = Run.objects.filter(state__in=JUDGED, slot__lt=before)
    return judged.order_by("-slot").values_list("slot", flat=True).first()


def _with_times(packed: bytes | None, dtype: np.dtype[np.void], name: str) -> NDArray[np.void]:
    rows = np.frombuffer(packed or b"", dtype).astype(dtype.newbyteorder("="))
    rows[name] += EPOCH
    return rows
