"""The newest of every series: how its row is made, kept, and read so that it is never behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from monitor.depot.locks import alone
from monitor.models.latest import HOURS, TREND_RUNS
from monitor.models.run import ENDED, State

if TYPE_CHECKING:
    from collections.abc import Iterable

LOCK = 0x6C617374  # "last": who writes rows later knows at least what who wrote them before did

LETTERS = {state[0]: State(state) for state in ENDED}
HEADLINE = "total.seconds"
COLUMNS = (
    "series_id, run, slot, state, stage, failed_resource, ended_at, outcomes, slots, failed_resources,"
    " hours_end, means, since"
)
_TELLING = ", ".join(f"'{state}'" for state in ENDED if state != State.SKIPPED)
_ENDED = ", ".join(f"'{state}'" for state in ENDED)

# Numbers that a reporter makes up may be as large, or as small, as no mean of them and no float of four bytes
# can be.
_SANE = "CASE WHEN abs(value) < 1e-30 THEN 0 ELSE greatest(least(value, 1e30), -1e30) END"


def made(these: str) -> str:
    """A SELECT of ``COLUMNS`` from runs and samples alone; *these* is what has the series, as ``id``."""
    return f"""
SELECT one.id AS series_id, told.id AS run, told.slot, coalesce(told.state, '') AS state,
    coalesce(told.stage, '') AS stage, coalesce(told.failed_resource, '') AS failed_resource, told.ended_at,
    coalesce(trend.outcomes, '') AS outcomes, coalesce(trend.slots, '{{}}') AS slots,
    coalesce(trend.failed_resources, '{{}}') AS failed_resources,
    headline.hour + interval '1 hour' AS hours_end, lately.means,
    CASE WHEN length(trend.outcomes) = {TREND_RUNS} THEN date_trunc('hour',
        least(trend.slots[1], told.slot, headline.hour - interval '{HOURS - 1} hours'), 'UTC')
        + CASE WHEN told.slot IS NULL OR headline.hour IS NULL THEN NULL ELSE interval '0' END END AS since
FROM {these} AS one
LEFT JOIN LATERAL (
    SELECT id, slot, state, stage, failed_resource, ended_at FROM monitor_run
    WHERE series_id = one.id AND state IN ({_TELLING}) ORDER BY slot DESC LIMIT 1
) AS told ON true
LEFT JOIN LATERAL (
    SELECT string_agg(left(state, 1), '' ORDER BY slot) AS outcomes, array_agg(slot ORDER BY slot) AS slots,
        CASE WHEN max(failed_resource) > '' THEN array_agg(failed_resource ORDER BY slot) END
            AS failed_resources
    FROM (
        SELECT slot, state, failed_resource FROM monitor_run
        WHERE series_id = one.id AND state IN ({_ENDED}) ORDER BY slot DESC LIMIT {TREND_RUNS}
    ) AS newest
) AS trend ON true
LEFT JOIN LATERAL (
    SELECT metric.id, date_trunc('hour', newest.time, 'UTC') AS hour
    FROM monitor_segment AS segment
    JOIN monitor_metric AS metric ON metric.segment_id = segment.id AND metric.name = '{HEADLINE}'
    CROSS JOIN LATERAL (
        SELECT time FROM monitor_sample WHERE metric_id = metric.id AND passed ORDER BY time DESC LIMIT 1
    ) AS newest
    WHERE segment.series_id = one.id ORDER BY newest.time DESC, metric.id DESC LIMIT 1
) AS headline ON true
LEFT JOIN LATERAL (
    SELECT string_agg(float4send(coalesce(mean, 'NaN')::float4), ''::bytea ORDER BY ago DESC) AS means
    FROM generate_series(0, {HOURS - 1}) AS ago LEFT JOIN (
        SELECT extract(epoch FROM headline.hour - date_trunc('hour', time, 'UTC'))::int / 3600 AS ago,
            avg({_SANE}) AS mean
        FROM monitor_sample
        WHERE metric_id = headline.id AND passed AND time < headline.hour + interval '1 hour'
            AND time >= headline.hour - interval '{HOURS - 1} hours'
        GROUP BY 1
    ) AS hourly USING (ago)
    WHERE headline.hour IS NOT NULL
) AS lately ON true"""  # noqa: S608  # our own words


def now(chosen: str = "true") -> str:
    """A relation of ``COLUMNS``, right at the moment of its statement: rows that are kept, but for those with
    new marks, which are made. *chosen* is a condition on ``series_id``; its parameters are needed twice."""
    return f"""(
WITH behind AS MATERIALIZED (
    SELECT DISTINCT mark.series_id AS id
    FROM (SELECT series_id, hour FROM monitor_stalehour WHERE NOT gathered AND {chosen}) AS mark
    LEFT JOIN monitor_latest AS had ON had.series_id = mark.series_id
    WHERE had.since IS NULL OR mark.hour >= had.since
)
SELECT {COLUMNS} FROM monitor_latest WHERE {chosen} AND series_id NOT IN (SELECT id FROM behind)
UNION ALL {made("behind")})"""  # noqa: S608


_BRING_UP = f"""
INSERT INTO monitor_latest ({COLUMNS})
{made("(SELECT id FROM monitor_series WHERE id = ANY (%s))")}
ON CONFLICT (series_id) DO UPDATE SET ({COLUMNS}) = ROW (excluded.*)
"""  # noqa: S608


def bring_up(series: Iterable[int]) -> None:
    """Make the rows of *series* (their keys) what their runs and samples are now.

    To be called in the transaction that gathers their marks, after it has done so: what is marked later is
    made later. Who is killed has done neither.
    """
    alone(LOCK, wait=True)
    with connection.cursor() as cursor:
        cursor.execute(_BRING_UP, [sorted(series)])
