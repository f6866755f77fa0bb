"""How runs and real jobs ended, and what is known of every series' success."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import transaction

from monitor.db import binary
from monitor.forecasts import inputs_sql
from monitor.forecasts.state_table import States

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# As ``inputs.INPUT``, with the series in the place of the metric. The value of one that passed is how many
# seconds it took; of one that did not, as many below -1. Whatever is no fault of the path does not count.
_ENDED = """
    SELECT series_id AS metric_id, slot AS time, ended_at AS known_at, CASE WHEN state = 'passed' THEN took
        ELSE -1 - took END AS value
    FROM monitor_run AS run CROSS JOIN LATERAL (
        SELECT greatest(extract(epoch FROM ended_at - coalesce(started_at, slot)), 0)::float8 AS took
    ) AS measured
    WHERE {series} AND state IN ('passed', 'failed', 'timed_out') AND {slot}
    UNION ALL
    SELECT segment.series_id, outcome.started_at, received_at, CASE WHEN passed THEN took ELSE -1 - took END
    FROM monitor_outcome AS outcome
    JOIN monitor_metric AS metric ON metric.id = outcome.metric_id
    JOIN monitor_segment AS segment ON segment.id = metric.segment_id
    CROSS JOIN LATERAL (
        SELECT greatest(extract(epoch FROM outcome.ended_at - outcome.started_at), 0)::float8 AS took
    ) AS measured
    WHERE segment.{series} AND {started_at}
"""
_IN_HOUR = "{0} >= hour AND {0} < hour + interval '1 hour'"
_HOUR = {"slot": _IN_HOUR.format("slot"), "started_at": _IN_HOUR.format("outcome.started_at")}
_OF_HOURS = f"""(
    SELECT ended.* FROM unnest(%(series)b::bigint[], %(hours)b::timestamptz[]) AS wanted (series, hour)
    CROSS JOIN LATERAL ({_ENDED.format(series="series_id = wanted.series", **_HOUR)}) AS ended
)"""  # noqa: S608  # our own words
_LATER = "{0} > %(than)b AND {0} <= %(by)b"
_PART = {"slot": _LATER.format("ended_at"), "started_at": _LATER.format("received_at")}
_NEXT = f"""(
    SELECT * FROM ({_ENDED.format(series="series_id = %(series)b", **_PART)}) AS ended
    ORDER BY known_at FETCH FIRST %(at_most)b ROWS WITH TIES
)"""  # noqa: S608

_ROWS = States(
    "monitor_successstate",
    "series_id",
    "monitor_series",
    locks="series_id, used_until, used, is_behind, state",
)
follow, begin_anew, keep, behind = _ROWS.follow, _ROWS.begin_anew, _ROWS.keep, _ROWS.behind
_STATES = """
SELECT series_id, state FROM monitor_successstate
WHERE series_id = ANY (%b::bigint[]) AND state IS NOT NULL AND NOT is_behind
"""
_TOTALS = """
SELECT segment.series_id, total.mean, total.quantiles
FROM monitor_currentsegment AS current
JOIN monitor_segment AS segment ON segment.id = current.segment_id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id AND metric.name = %(name)b
JOIN monitor_forecaststate AS total ON total.metric_id = metric.id
WHERE current.series_id = ANY (%(series)b::bigint[]) AND total.mean IS NOT NULL
"""
_EXPECT = """
UPDATE monitor_successstate
SET expected_seconds = %(expected_seconds)b, quantiles = %(quantiles)b::float8[] WHERE series_id = %(series)b
"""


class Row(NamedTuple):
    series: int
    used_until: datetime | None
    used: bytes | None
    is_behind: bool
    state: bytes | None


class Total(NamedTuple):
    """How long the next run of *series* takes, if it passes."""

    series: int
    mean: float
    quantiles: Sequence[float]


def of_hours(wanted: Collection[tuple[int, datetime]]) -> NDArray[np.void]:
    """What ended of these series in these hours (each by its start), in no order."""
    series, hours = zip(*wanted, strict=True) if wanted else ((), ())
    return inputs_sql.read(_OF_HOURS, {"series": list(series), "hours": list(hours)})


def following(series: int, than: datetime, by: datetime, at_most: int) -> NDArray[np.void]:
    """As ``inputs.following``, of one series."""
    return inputs_sql.read(_NEXT, {"series": series, "than": than, "by": by, "at_most": at_most})


def locked(series: Collection[int]) -> list[Row]:
    """Their rows, ours until the end of the transaction."""
    return [Row(*row) for row in _ROWS.locked(series)]


def states(series: Collection[int]) -> list[tuple[int, bytes]]:
    """What is known of those of *series* that have read all that there is, as it is kept."""
    with binary.cursor() as cursor:
        return list(cursor.execute(_STATES, [list(series)], binary=True).fetchall())


@transaction.atomic
def begin_anew_outdated(kind: type) -> int:
    """Let all whose states of *kind* cannot be loaded any more begin anew; how many these are."""
    anew = _ROWS.outdated(kind)
    begin_anew(anew)
    return len(anew)


def totals(series: Collection[int], name: str) -> list[Total]:
    """Of the current segments of those of *series* that have an answer of the metric *name*."""
    told = {"series": list(series), "name": name}
    with binary.cursor() as cursor:
        return [Total(*row) for row in cursor.execute(_TOTALS, told, binary=True)]


def expect(rows: Iterable[dict[str, Any]]) -> None:
    """Keep how long it takes until a run has passed."""
    with binary.cursor() as cursor:
        cursor.executemany(_EXPECT, rows)
