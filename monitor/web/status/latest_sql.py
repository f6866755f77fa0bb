"""SQL of the table of latest states, one row per series: compute rows, store rows, and read without lag.

Rows are computed from the newest runs and samples. Their times are not known before, and a statement without
a bound is planned for all partitions, so its cost grows with the history. Rows are therefore computed with a
bound first: a row that is complete within the bound would be the same without it. Only the other rows are
computed from the whole history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg.rows import class_row

from monitor.core.db import binary
from monitor.models.latest_run import HOURS, TREND_RUNS
from monitor.models.run import ENDED, State

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

LETTERS = {state[0]: State(state) for state in ENDED}
HEADLINE = "total.seconds"
RUN_COLUMNS = (
    "series_id, run, slot, state, stage, failed_resource, ended_at, outcomes, slots, failed_resources"
)
COLUMNS = f"{RUN_COLUMNS}, metric, hours_end, means, since"
NO_MEANS = f"decode(repeat('7fc00000', {HOURS}), 'hex')"
_NOT_SKIPPED = ", ".join(f"'{state}'" for state in ENDED if state != State.SKIPPED)
_ENDED = ", ".join(f"'{state}'" for state in ENDED)

# A reporter may send values that overflow or underflow their mean, or a float of four bytes.
_SANE = "CASE WHEN abs(value) < 1e-30 THEN 0 ELSE greatest(least(value, 1e30), -1e30) END"

_SELECT_RUNS = """
SELECT changed.id AS series_id, newest.id AS run, newest.slot, coalesce(newest.state, '') AS state,
    coalesce(newest.stage, '') AS stage, coalesce(newest.failed_resource, '') AS failed_resource,
    newest.ended_at,
    coalesce(trend.outcomes, '') AS outcomes, coalesce(trend.slots, '{}') AS slots,
    coalesce(trend.failed_resources, '{}') AS failed_resources"""
_RUNS_SINCE = f""",
    CASE WHEN length(trend.outcomes) = {TREND_RUNS} AND newest.slot IS NOT NULL
        THEN date_trunc('hour', least(trend.slots[1], newest.slot), 'UTC') END AS since"""
_SELECT_HOURS = f""",
    lately.metric, lately.hours_end, hourly.means,
    CASE WHEN length(trend.outcomes) = {TREND_RUNS} AND newest.slot IS NOT NULL AND lately.begin IS NOT NULL
        THEN date_trunc('hour', least(trend.slots[1], newest.slot, lately.begin), 'UTC') END AS since"""
_JOIN_RUNS = f"""
LEFT JOIN LATERAL (
    SELECT id, slot, state, stage, failed_resource, ended_at FROM monitor_run
    WHERE series_id = changed.id AND state IN ({_NOT_SKIPPED}) AND SLOT_BOUND ORDER BY slot DESC LIMIT 1
) AS newest ON true
LEFT JOIN LATERAL (
    SELECT string_agg(left(state, 1), '' ORDER BY slot) AS outcomes, array_agg(slot ORDER BY slot) AS slots,
        CASE WHEN max(failed_resource) > '' THEN array_agg(failed_resource ORDER BY slot) END
            AS failed_resources
    FROM (
        SELECT slot, state, failed_resource FROM monitor_run
        WHERE series_id = changed.id AND state IN ({_ENDED}) AND SLOT_BOUND
        ORDER BY slot DESC LIMIT {TREND_RUNS}
    ) AS ended
) AS trend ON true"""  # noqa: S608
# The stored means before the first changed hour stay valid if the metric is the same and the 24 hours do not
# move back. Only hours from *recompute_from* on are computed from samples.
_JOIN_HOURS = f"""
LEFT JOIN monitor_latestrun AS stored ON stored.series_id = changed.id
LEFT JOIN LATERAL (
    SELECT metric.id, date_bin('1 hour', sample.time, timestamptz 'epoch') + interval '1 hour' AS hours_end
    FROM monitor_segment AS segment
    JOIN monitor_metric AS metric ON metric.segment_id = segment.id AND metric.name = '{HEADLINE}'
    CROSS JOIN LATERAL (
        SELECT time FROM monitor_sample
        WHERE metric_id = metric.id AND passed AND TIME_BOUND ORDER BY time DESC LIMIT 1
    ) AS sample
    WHERE segment.series_id = changed.id ORDER BY sample.time DESC, metric.id DESC LIMIT 1
) AS headline ON true
LEFT JOIN LATERAL (
    SELECT headline.id AS metric, headline.hours_end, begin,
        CASE WHEN stored.metric = headline.id AND stored.hours_end <= headline.hours_end
            THEN greatest(least(changed.hour, headline.hours_end), begin) ELSE begin END AS recompute_from
    FROM (SELECT headline.hours_end - interval '{HOURS} hours' AS begin) AS day WHERE begin IS NOT NULL
) AS lately ON true
LEFT JOIN LATERAL (
    SELECT substr(
        coalesce(stored.means, '') || {NO_MEANS},
        1 + 4 * greatest(
            least(date_part('epoch', lately.hours_end - stored.hours_end) / 3600, {HOURS}), 0
        )::int,
        4 * (date_part('epoch', lately.recompute_from - lately.begin) / 3600)::int
    ) || coalesce(string_agg(float4send(coalesce(mean, 'NaN')::float4), ''::bytea ORDER BY hour), '') AS means
    FROM generate_series(
        lately.recompute_from, lately.hours_end - interval '1 hour', interval '1 hour'
    ) AS hour
    LEFT JOIN (
        SELECT date_bin('1 hour', time, timestamptz 'epoch') AS hour, avg({_SANE}) AS mean FROM monitor_sample
        WHERE metric_id = lately.metric AND passed AND TIME_BOUND
            AND time >= lately.recompute_from AND time < lately.hours_end
        GROUP BY 1
    ) AS hourly_mean USING (hour)
) AS hourly ON true"""  # noqa: S608


def computed_rows(changed: str, *, with_hours: bool = True, since: datetime | None = None) -> str:
    """Return a SELECT of ``COLUMNS`` that computes rows from runs and samples.

    Without *with_hours* it selects ``RUN_COLUMNS`` and ``since``. *changed* is a relation with the columns
    ``id`` (of a series) and ``hour`` (the first hour that may have changed). With *since*, rows that need
    older runs or samples are left out.
    """
    columns = _SELECT_RUNS + (_SELECT_HOURS if with_hours else _RUNS_SINCE)
    query = f"{columns} FROM {changed} AS changed {_JOIN_RUNS}{_JOIN_HOURS if with_hours else ''}"
    bound = "true" if since is None else "{} >= " + f"'{since.isoformat()}'::timestamptz"
    for name, column in (("SLOT_BOUND", "slot"), ("TIME_BOUND", "time")):
        query = query.replace(name, bound.format(column))
    if since is None:
        return query
    return f"SELECT * FROM ({query}) AS computed WHERE {bound.format('since')}"  # noqa: S608


class BehindSeries(NamedTuple):
    """A series whose stored row is outdated.

    Attributes:
        id: its primary key.
        hour: the first hour that changed.
        since: as in the stored row; None if there is no such row.
    """

    id: int
    hour: datetime
    since: datetime | None


_BEHIND = """
SELECT dirty.series_id AS id, min(dirty.hour) AS hour, min(stored.since) AS since
FROM (SELECT series_id, hour FROM monitor_dirtyhour WHERE NOT gathered AND {condition}) AS dirty
LEFT JOIN monitor_latestrun AS stored ON stored.series_id = dirty.series_id
WHERE stored.since IS NULL OR dirty.hour >= stored.since
GROUP BY 1
"""


def behind(condition: str, parameters: Sequence[object]) -> list[BehindSeries]:
    """Return the series whose stored rows are outdated; *condition* restricts ``series_id``."""
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(BehindSeries)
        query = _BEHIND.format(condition=condition).encode()
        return cursor.execute(query, parameters, prepare=False, binary=True).fetchall()


def bound_of(rows: Collection[BehindSeries]) -> datetime | None:
    """Return a time after which nearly always all runs and samples lie that *rows* need; None if unknown."""
    times = [row.since for row in rows if row.since is not None]
    return min(times) if times and len(times) == len(rows) else None


_PAIRS = "(SELECT * FROM unnest(%b::bigint[], %b::timestamptz[]) AS each (id, hour))"


def rows_with(
    condition: str,
    parameters: Sequence[object],
    computed: Collection[BehindSeries],
    *,
    with_hours: bool,
    since: datetime | None,
) -> tuple[str, list[object]]:
    """Return a relation of ``COLUMNS``, with its parameters: stored rows, and rows of the series *computed*.

    Without *with_hours* the relation has ``RUN_COLUMNS``. With *since*, computed rows that need older runs or
    samples are left out.
    """
    columns = COLUMNS if with_hours else RUN_COLUMNS
    stored = f"SELECT {columns} FROM monitor_latestrun WHERE {condition}"  # noqa: S608
    if not computed:
        return f"({stored})", [*parameters]
    keys, hours = [row.id for row in computed], [row.hour for row in computed]
    rows = computed_rows(_PAIRS, with_hours=with_hours, since=since)
    return (
        f"({stored} AND series_id <> ALL (%b::bigint[])"  # noqa: S608
        f" UNION ALL SELECT {columns} FROM ({rows}) AS computed)",
        [*parameters, keys, keys, hours],
    )


def current_rows(condition: str = "true", *, with_hours: bool = True) -> str:
    """Return a relation of ``COLUMNS`` that is up to date when its statement runs.

    Without *with_hours* the relation has ``RUN_COLUMNS``. Stored rows are used as they are; rows of series
    with dirty hours are computed. *condition* restricts ``series_id``; the relation contains the condition
    twice, so it needs the parameters twice.
    """
    columns = COLUMNS if with_hours else RUN_COLUMNS
    return f"""(
WITH behind AS MATERIALIZED ({_BEHIND.format(condition=condition)})
SELECT {columns} FROM monitor_latestrun
WHERE {condition} AND series_id NOT IN (SELECT id FROM behind)
UNION ALL SELECT {columns} FROM ({computed_rows("behind", with_hours=with_hours)}) AS computed)"""  # noqa: S608


_CHANGED = """(
    SELECT series.id, min(changed.hour) AS hour
    FROM unnest(%b::bigint[], %b::timestamptz[]) AS changed (series, hour)
    JOIN monitor_series AS series ON series.id = changed.series GROUP BY 1
)"""
_EXCLUDED = ", ".join(f"excluded.{column}" for column in COLUMNS.split(", "))
_STORED_SINCE = (
    "SELECT series_id, since FROM monitor_latestrun WHERE series_id = ANY (%b) AND since IS NOT NULL"
)


def _update(since: datetime | None) -> str:
    return f"""
INSERT INTO monitor_latestrun ({COLUMNS})
SELECT {COLUMNS} FROM ({computed_rows(_CHANGED, since=since)}) AS computed
ON CONFLICT (series_id) DO UPDATE SET ({COLUMNS}) = ROW ({_EXCLUDED})
RETURNING series_id
"""  # noqa: S608


def update_rows(changed: Collection[tuple[int, datetime]]) -> None:
    """Recompute the rows of the series in *changed*, pairs of (series, changed hour).

    Call this in the transaction that gathers these dirty hours, after the hours are gathered: either both
    changes are committed, or the hours are gathered again.
    """
    with binary.cursor() as cursor:
        stored = cursor.execute(_STORED_SINCE, [[series for series, _ in changed]]).fetchall()
    since = dict(stored)
    recent = [pair for pair in changed if pair[0] in since]
    updated = _updated(recent, min(since.values())) if recent else set()
    _updated([pair for pair in changed if pair[0] not in updated], None)


def _updated(changed: Collection[tuple[int, datetime]], since: datetime | None) -> set[int]:
    """Recompute rows, and return the keys of their series; with *since*, rows that need more are left out."""
    if not changed:
        return set()
    with binary.cursor() as cursor:
        parameters = [[series for series, _ in changed], [hour for _, hour in changed]]
        return {key for (key,) in cursor.execute(_update(since).encode(), parameters).fetchall()}
