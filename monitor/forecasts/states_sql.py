"""Metrics that are followed: which hear of a change, their rows, and the news that wait for them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction

from monitor.db import binary
from monitor.forecasts.input_digest import NEVER_SO
from monitor.forecasts.state_table import States

BY_THEMSELVES = r"^(total|total_essential|total_core|stage\..*)\.seconds$"  # others when they are asked for

_NOTE = """
INSERT INTO monitor_pendingchange (series_id, hour, due_at)
SELECT * FROM unnest(%b::bigint[], %b::timestamptz[], %b::timestamptz[])
"""
_NEWS = """
SELECT id, series_id, hour FROM monitor_pendingchange
WHERE due_at IS NULL OR due_at <= %s ORDER BY id LIMIT %s
"""
_FORGET = "DELETE FROM monitor_pendingchange WHERE id = ANY (%s)"
_OF_SERIES = f"""
SELECT metric.id, metric.name, metric.unit, segment.id, segment.began_at, series.id, series.name
FROM monitor_segment AS segment
JOIN monitor_series AS series ON series.id = segment.series_id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE {{which}} AND (
    metric.name ~ '{BY_THEMSELVES}' OR EXISTS (SELECT FROM monitor_forecaststate WHERE metric_id = metric.id)
) ORDER BY metric.id
"""  # noqa: S608  # our own words
_ROWS = States(
    "monitor_forecaststate",
    "metric_id",
    "monitor_metric",
    locks="metric_id, used_until, used, is_behind, marked_until",
    new=(", is_new, method, predictor, record_n, less, most", ", true, '', '', 0, '{}', '{}'"),
    anew=", marked_until = NULL, n = 0, last_time = NULL, last_value = NULL",
)
follow, keep, behind = _ROWS.follow, _ROWS.keep, _ROWS.behind
_STATES = """
SELECT metric_id, state, last_time, last_value FROM monitor_forecaststate
WHERE metric_id = ANY (%b::bigint[]) AND state IS NOT NULL
"""
_UNMARK = "DELETE FROM monitor_checkpoint WHERE metric_id = ANY (%b::bigint[])"
_GIVE_UP = """
UPDATE monitor_forecaststate SET is_behind = false, used = %(used)b
WHERE metric_id = ANY (%(metrics)b::bigint[])
"""
# What is not marked yet is in the row until it goes on; the older of the two before makes room.
_MARK = """
WITH marked AS (
    UPDATE monitor_forecaststate SET marked_until = used_until WHERE metric_id = ANY (%(metrics)b::bigint[])
    RETURNING metric_id, used_until, state, used, n, last_time, last_value
), old AS (
    DELETE FROM monitor_checkpoint AS old
    WHERE metric_id = ANY (%(metrics)b::bigint[]) AND used_until < (
        SELECT max(used_until) FROM monitor_checkpoint WHERE metric_id = old.metric_id
    )
)
INSERT INTO monitor_checkpoint (metric_id, used_until, state, used, n, last_time, last_value)
SELECT * FROM marked
"""
_MARKS = """
SELECT id, metric_id, used_until, used FROM monitor_checkpoint
WHERE metric_id = ANY (%b::bigint[]) ORDER BY metric_id, used_until DESC
"""
_GO_BACK = """
WITH back AS (
    UPDATE monitor_forecaststate AS state
    SET state = mark.state, used_until = mark.used_until, used = mark.used, is_behind = true,
        marked_until = mark.used_until, n = mark.n, last_time = mark.last_time, last_value = mark.last_value
    FROM monitor_checkpoint AS mark WHERE mark.id = ANY (%b::bigint[]) AND state.metric_id = mark.metric_id
    RETURNING mark.metric_id, mark.used_until
)
DELETE FROM monitor_checkpoint AS mark USING back
WHERE mark.metric_id = back.metric_id AND mark.used_until > back.used_until
"""


class Followed(NamedTuple):
    """A metric that is followed, or is to be: of which segment of which series (their keys)."""

    metric: int
    name: str
    unit: str
    segment: int
    began_at: datetime
    series: int
    series_name: str

    @property
    def said(self) -> tuple[str, str]:
        """Its name, and that of its series."""
        return self.name, self.series_name


class News(NamedTuple):
    key: int
    series: int
    hour: datetime


class Row(NamedTuple):
    """What is known of what a state has used."""

    metric: int
    used_until: datetime | None
    used: bytes | None
    is_behind: bool
    marked_until: datetime | None


class Mark(NamedTuple):
    """What a metric had used when it was marked."""

    key: int
    metric: int
    used_until: datetime
    used: bytes


class Kept(NamedTuple):
    metric: int
    state: bytes
    last_time: datetime | None
    last_value: float | None


def note(changed: Collection[tuple[int, datetime]], due_at: datetime | None = None) -> None:
    """Something of these (key of the series, and the hour) is not as it was, or is known from *due_at* on;
    part of the caller's transaction."""
    if changed:
        series, hours = zip(*sorted(set(changed)), strict=True)
        with binary.cursor() as cursor:
            cursor.execute(_NOTE, [list(series), list(hours), [due_at] * len(series)])


def news(now: datetime, at_most: int) -> list[News]:
    """The oldest that are due."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWS, [now, at_most])
        return [News(*row) for row in cursor.fetchall()]


def forget(those: Collection[int]) -> None:
    """Take the news of these keys away."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [list(those)])


def of_series(series: Collection[int]) -> list[Followed]:
    """All that are followed, or are to be, of these series."""
    return _followed("series.id = ANY (%b::bigint[])", series)


def of_metrics(metrics: Collection[int]) -> list[Followed]:
    """Those of *metrics* that are followed, or are to be."""
    return _followed("metric.id = ANY (%b::bigint[])", metrics)


def locked(metrics: Collection[int]) -> list[Row]:
    """Their rows, ours until the end of the transaction."""
    return [Row(*row) for row in _ROWS.locked(metrics)]


def states(metrics: Collection[int]) -> dict[int, Kept]:
    """Of those of *metrics* that have any."""
    with binary.cursor() as cursor:
        return {row[0]: Kept(*row) for row in cursor.execute(_STATES, [list(metrics)], binary=True)}


def begin_anew(metrics: Collection[int]) -> None:
    """Forget what *metrics* have used; what was answered stays until there is a newer answer."""
    _ROWS.begin_anew(metrics)
    with binary.cursor() as cursor:
        cursor.execute(_UNMARK, [list(metrics)])


@transaction.atomic
def begin_anew_outdated(kind: type) -> int:
    """The same for all whose states of *kind* cannot be loaded any more; how many these are."""
    anew = _ROWS.outdated(kind)
    begin_anew(anew)
    return len(anew)


def give_up(metrics: Collection[int]) -> None:
    """Let *metrics* read no further until something happens again: then it turns out that something is not
    as it was, as what came meanwhile has not been used."""
    with binary.cursor() as cursor:
        cursor.execute(_GIVE_UP, {"metrics": list(metrics), "used": NEVER_SO})


def mark(metrics: Collection[int]) -> None:
    """Let it be possible to go back to what *metrics* know."""
    with binary.cursor() as cursor:
        cursor.execute(_MARK, {"metrics": list(metrics)})


def marks(metrics: Collection[int]) -> list[Mark]:
    """Of each of *metrics*, the newest first."""
    with binary.cursor() as cursor:
        return [Mark(*row) for row in cursor.execute(_MARKS, [list(metrics)], binary=True)]


def go_back(keys: Collection[int]) -> None:
    """Let metrics know what they knew at these marks, and read on from there."""
    with binary.cursor() as cursor:
        cursor.execute(_GO_BACK, [list(keys)])


def _followed(which: str, keys: Collection[int]) -> list[Followed]:
    with binary.cursor() as cursor:
        found = cursor.execute(_OF_SERIES.format(which=which).encode(), [list(keys)])
        return [Followed(*row) for row in found]
