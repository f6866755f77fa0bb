"""The newest of every series: how its row is made, kept, and read so that it is never behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.db import binary
from monitor.models.latest_run import HOURS, TREND_RUNS
from monitor.models.run import ENDED, State

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

LETTERS = {state[0]: State(state) for state in ENDED}
HEADLINE = "total.seconds"
OF_RUNS = "series_id, run, slot, state, stage, failed_resource, ended_at, outcomes, slots, failed_resources"
COLUMNS = f"{OF_RUNS}, metric, hours_end, means, since"
NO_MEANS = f"decode(repeat('7fc00000', {HOURS}), 'hex')"
_TELLING = ", ".join(f"'{state}'" for state in ENDED if state != State.SKIPPED)
_ENDED = ", ".join(f"'{state}'" for state in ENDED)

# Numbers that a reporter makes up may be as large, or as small, as no mean of them and no float of four bytes
# can be.
_SANE = "CASE WHEN abs(value) < 1e-30 THEN 0 ELSE greatest(least(value, 1e30), -1e30) END"

_MADE_OF_RUNS = """
SELECT one.id AS series_id, told.id AS run, told.slot, coalesce(told.state, '') AS state,
    coalesce(told.stage, '') AS stage, coalesce(told.failed_resource, '') AS failed_resource, told.ended_at,
    coalesce(trend.outcomes, '') AS outcomes, coalesce(trend.slots, '{}') AS slots,
    coalesce(trend.failed_resources, '{}') AS failed_resources"""
_MADE_OF_HOURS = f""",
    lately.metric, lately.hours_end, hourly.means,
    CASE WHEN length(trend.outcomes) = {TREND_RUNS} AND told.slot IS NOT NULL AND lately.begin IS NOT NULL
        THEN date_trunc('hour', least(trend.slots[1], told.slot, lately.begin), 'UTC') END AS since"""
_RUNS = f"""
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
) AS trend ON true"""  # noqa: S608
# What is kept of hours before the first that changed is right, as long as it is of the same metric and none
# from before them comes into sight again. Only the others, from *anew* on, are made of samples.
_HOURS = f"""
LEFT JOIN monitor_latestrun AS had ON had.series_id = one.id
LEFT JOIN LATERAL (
    SELECT metric.id, date_bin('1 hour', newest.time, timestamptz 'epoch') + interval '1 hour' AS hours_end
    FROM monitor_segment AS segment
    JOIN monitor_metric AS metric ON metric.segment_id = segment.id AND metric.name = '{HEADLINE}'
    CROSS JOIN LATERAL (
        SELECT time FROM monitor_sample WHERE metric_id = metric.id AND passed ORDER BY time DESC LIMIT 1
    ) AS newest
    WHERE segment.series_id = one.id ORDER BY newest.time DESC, metric.id DESC LIMIT 1
) AS headline ON true
LEFT JOIN LATERAL (
    SELECT headline.id AS metric, headline.hours_end, begin,
        CASE WHEN had.metric = headline.id AND had.hours_end <= headline.hours_end
            THEN greatest(least(one.hour, headline.hours_end), begin) ELSE begin END AS anew
    FROM (SELECT headline.hours_end - interval '{HOURS} hours' AS begin) AS day WHERE begin IS NOT NULL
) AS lately ON true
LEFT JOIN LATERAL (
    SELECT substr(
        coalesce(had.means, '') || {NO_MEANS},
        1 + 4 * greatest(least(date_part('epoch', lately.hours_end - had.hours_end) / 3600, {HOURS}), 0)::int,
        4 * (date_part('epoch', lately.anew - lately.begin) / 3600)::int
    ) || coalesce(string_agg(float4send(coalesce(mean, 'NaN')::float4), ''::bytea ORDER BY hour), '') AS means
    FROM generate_series(lately.anew, lately.hours_end - interval '1 hour', interval '1 hour') AS hour
    LEFT JOIN (
        SELECT date_bin('1 hour', time, timestamptz 'epoch') AS hour, avg({_SANE}) AS mean FROM monitor_sample
        WHERE metric_id = lately.metric AND passed AND time >= lately.anew AND time < lately.hours_end
        GROUP BY 1
    ) AS its USING (hour)
) AS hourly ON true"""  # noqa: S608


def made(these: str, *, with_hours: bool = True) -> str:
    """A SELECT of ``COLUMNS``, or ``OF_RUNS`` alone. *these* is what has the series, as ``id``, and the first
    ``hour`` from which on anything may be other than it is kept."""
    if not with_hours:
        return f"{_MADE_OF_RUNS} FROM {these} AS one {_RUNS}"
    return f"{_MADE_OF_RUNS}{_MADE_OF_HOURS} FROM {these} AS one {_RUNS}{_HOURS}"


def now(chosen: str = "true", *, with_hours: bool = True) -> str:
    """A relation of ``COLUMNS``, or ``OF_RUNS`` alone, right at the moment of its statement: rows that are
    kept, but for those with new marks, which are made. *chosen* is a condition on ``series_id``; its
    parameters are needed twice."""
    return f"""(
WITH behind AS MATERIALIZED (
    SELECT mark.series_id AS id, min(mark.hour) AS hour
    FROM (SELECT series_id, hour FROM monitor_dirtyhour WHERE NOT gathered AND {chosen}) AS mark
    LEFT JOIN monitor_latestrun AS had ON had.series_id = mark.series_id
    WHERE had.since IS NULL OR mark.hour >= had.since
    GROUP BY 1
)
SELECT {COLUMNS if with_hours else OF_RUNS} FROM monitor_latestrun
WHERE {chosen} AND series_id NOT IN (SELECT id FROM behind)
UNION ALL {made("behind", with_hours=with_hours)})"""  # noqa: S608


_CHANGED = """(
    SELECT series.id, min(changed.hour) AS hour
    FROM unnest(%b::bigint[], %b::timestamptz[]) AS changed (series, hour)
    JOIN monitor_series AS series ON series.id = changed.series GROUP BY 1
)"""
_EXCLUDED = ", ".join(f"excluded.{column}" for column in COLUMNS.split(", "))
_BRING_UP = f"""
INSERT INTO monitor_latestrun ({COLUMNS})
{made(_CHANGED)}
ON CONFLICT (series_id) DO UPDATE SET ({COLUMNS}) = ROW ({_EXCLUDED})
"""


def bring_up(changed: Collection[tuple[int, datetime]]) -> None:
    """Make rows what runs and samples are now: of each series that has *changed* (its key, and the hour).

    To be called in the transaction that gathers these marks, after it has done so: what is marked later is
    made later. Who is killed has done neither, and who gathers next knows of it.
    """
    with binary.cursor() as cursor:
        cursor.execute(_BRING_UP, [[series for series, _ in changed], [hour for _, hour in changed]])
