"""Query a metric over a time range: rollups of whole days, and samples of days that the range covers in part.

Samples are read for days that the range covers in part and for days with dirty hours, so an answer never
depends on which rollups exist. A query executes one statement, and a second statement if days in the middle
of the range are dirty. Above a limit, the database aggregates the samples. If the samples of a day were
deleted and the range covers only a part of this day, the result has the day's hourly rollups if the tier is
hours, and nothing if the tier is days.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import numpy as np

from monitor.core.db import binary
from monitor.core.db.partitions import months
from monitor.core.db.timestamps import micros, moment
from monitor.depot.engines.rollup_tables import AGGREGATES
from monitor.depot.rollups import codec
from monitor.depot.rollups.time_ranges import DAY, TimeRange, after, days_of, sampled_days

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tier = Literal["hour", "day"]

MOST_SAMPLES = 1_000_000  # read by one query; the database aggregates more

_RECENT = timedelta(days=32)  # nearly always holds the newest sample, in two partitions

_ROLLED = """
SELECT string_agg({sent}, ''::bytea ORDER BY bucket), {keys}
FROM monitor_{tier}rollup WHERE metric_id = %(metric)s AND {wanted}
"""
_GONE_BEFORE = """
SELECT gone_before FROM monitor_metric AS metric JOIN monitor_segment AS segment ON segment.id = segment_id
JOIN monitor_retentioncutoff AS cutoff ON cutoff.series_id = segment.series_id AND kind = 'samples'
WHERE metric.id = %(metric)s
"""
_OF_DAYS = "bucket >= %(first_day)s AND bucket < %(last_day)s"
_OF_HOURS = f"""bucket >= %(first_hour)s AND bucket < %(last_hour)s
AND ({_OF_DAYS} OR bucket < ({_GONE_BEFORE}))"""
_ENTRIES = f"""
SELECT string_agg({codec.SENT_COUNT}, ''::bytea) FROM (
    SELECT bucket, key, count(*) AS many FROM ({{source}}) AS source, unnest(sketch) AS key GROUP BY 1, 2
) AS entries
"""  # noqa: S608
_LARGE_SKETCHES = """
SELECT bucket, sketch FROM monitor_{tier}rollup WHERE metric_id = %(metric)s AND bucket = ANY (%(buckets)s)
"""
_AGGREGATED = f"""
WITH aggregated AS MATERIALIZED (
    SELECT date_trunc('{{tier}}', time, 'UTC') AS bucket, {AGGREGATES} FROM ({{each}}) AS samples GROUP BY 1
)
SELECT (SELECT string_agg({{sent}}, ''::bytea ORDER BY bucket) FROM aggregated), ({{entries}})
"""  # noqa: S608
_DAYS = """
SELECT string_agg(timestamptz_send(bucket), ''::bytea)
FROM monitor_dayrollup WHERE metric_id = %(metric)s AND bucket >= %(first_day)s AND bucket < %(last_day)s
"""
# Rollups of deleted samples are final, even where an hour is dirty for all series.
_DIRTY = """
SELECT string_agg(timestamptz_send(day), ''::bytea)
FROM (
    SELECT DISTINCT date_trunc('day', hour, 'UTC') AS day
    FROM monitor_metric AS metric JOIN monitor_segment AS segment ON segment.id = segment_id
    JOIN monitor_dirtyhour AS dirty ON dirty.series_id = ANY (ARRAY[0, segment.series_id])
    WHERE metric.id = %(metric)s AND hour > %(start)s - interval '1 hour' AND hour < %(end)s AND NOT EXISTS (
        SELECT FROM monitor_retentioncutoff AS cutoff
        WHERE cutoff.series_id = segment.series_id AND kind = 'samples' AND hour < gone_before
    )
) AS dirty_days
"""
_NEWEST = """
SELECT known_at FROM monitor_sample
WHERE metric_id = %(metric)s AND time >= %(recent)s AND time < %(end)s AND {months} ORDER BY time DESC LIMIT 1
"""
_NOTHING = "SELECT NULL::bytea"
_SAMPLES = """
SELECT string_agg({sent}, ''::bytea) FROM (SELECT * FROM ({each}) AS each LIMIT %(most)s) AS samples
"""
_ALL = "SELECT rolled.*, ({days}), ({dirty}), ({newest}), ({gone}), ({samples}) FROM ({rolled}) AS rolled"
_MIDDLE = f"SELECT ({{samples}}), ({_GONE_BEFORE})"
_IN_RANGE = """
SELECT time, value, passed FROM monitor_sample
WHERE metric_id = %(metric)s AND time >= %(start_{at})s AND time < %(end_{at})s AND {months}
"""


@dataclass(frozen=True)
class RollupsAndSamples:
    """The rollups and the samples of a result, unordered.

    Attributes:
        rolled: rollups, dtype ``codec.ROLLUP``.
        ranks: for a query with ranks, a row per rollup: its sketch keys of ``codec.PERCENTS``.
        entries: for a query without ranks, the sketches of all rollups, dtype ``codec.SKETCH_ENTRY``.
        samples: samples, dtype ``codec.SAMPLE``.
    """

    rolled: NDArray[np.void]
    ranks: NDArray[np.int64]
    entries: NDArray[np.void]
    samples: NDArray[np.void]


_EMPTY = RollupsAndSamples(
    np.empty(0, codec.ROLLUP),
    np.empty((0, len(codec.PERCENTS)), np.int64),
    np.empty(0, codec.SKETCH_ENTRY),
    np.empty(0, codec.SAMPLE),
)


@dataclass(frozen=True)
class QueryResult(RollupsAndSamples):
    """All values of a time range, each in a rollup or as a sample.

    Attributes:
        complete: whether no hour of the range is dirty.
        newest_known_at: time at which the newest sample became known.
        gone_before: time before which samples were deleted; None if no samples were deleted.
    """

    complete: bool
    newest_known_at: datetime | None
    gone_before: datetime | None

    def has_samples_from(self, start: datetime) -> bool:
        """Return whether all samples from *start* on still exist."""
        return self.gone_before is None or self.gone_before <= start


@dataclass(frozen=True)
class _Query:
    """The arguments of ``read``."""

    metric: int
    time_range: TimeRange
    tier: Tier
    ranks: bool
    most_samples: int

    @property
    def has_rollups(self) -> bool:
        """Return whether the time range contains a whole bucket of the tier: an hour or a day."""
        if self.tier == "hour":
            return self.time_range.first_hour < self.time_range.last_hour
        return self.time_range.first_day < self.time_range.last_day

    @property
    def sent(self) -> str:
        return codec.SENT_ROLLUP + (codec.SENT_RANKS if self.ranks else "")


def read(
    metric_id: int,
    start: datetime,
    end: datetime,
    *,
    tier: Tier | None = "day",
    ranks: bool = False,
    most_samples: int = MOST_SAMPLES,
) -> QueryResult:
    """Read the rollups (of *tier*) and samples of a metric from *start* until before *end*.

    Samples are read where no rollup is usable. With ``tier=None`` only samples are read; if there are more
    than *most_samples*, the tier is days instead. If a part of the range has more than *most_samples*
    samples, the database aggregates them to rollups of the tier. With *ranks*, each rollup has the sketch
    keys of ``codec.PERCENTS`` instead of its whole sketch.
    """
    time_range = TimeRange(start.astimezone(UTC), max(start, end).astimezone(UTC), has_days=tier is not None)
    query = _Query(metric_id, time_range, tier or "day", ranks, most_samples)
    row = binary.row(_statement(query), _parameters(query, time_range.edges))
    # By position: this is the hot path of every chart, and most columns are binary arrays.
    rows, keys, days, dirty, newest, gone_before, samples = row
    gone = micros(gone_before) if gone_before else 0
    edges = codec.samples(samples)
    if tier is None and len(edges) > most_samples:
        return read(metric_id, start, end, ranks=ranks, most_samples=most_samples)
    rolled, changed = _rollups(rows, keys, ranks=ranks), codec.times(dirty)
    middle = sampled_days(rolled.rolled["start"], codec.times(days), changed, time_range, gone)
    parts = [_of_samples(query, after(gone, time_range.edges), edges[edges["time"] >= gone])]
    if middle:
        rolled = _without(rolled, days_of(middle))
        packed, gone_by_now = binary.row(_MIDDLE.format(samples=_samples(middle)), _parameters(query, middle))
        if gone_by_now != gone_before:  # samples were deleted since: their rollups are final now
            return read(metric_id, start, end, tier=tier, ranks=ranks, most_samples=most_samples)
        parts.append(_of_samples(query, middle, codec.samples(packed)))
    whole = _concatenated([_with_large_sketches(query, rolled), *parts])
    result = QueryResult(
        **vars(whole), complete=not len(changed), newest_known_at=newest, gone_before=gone_before
    )
    return result if newest else _with_newest(result, metric_id)


def without_rollups(result: QueryResult) -> QueryResult:
    """Return the samples of *result* only."""
    return replace(result, rolled=result.rolled[:0], ranks=result.ranks[:0], entries=result.entries[:0])


def _statement(query: _Query) -> str:
    rolled, days, time_range = "SELECT NULL::bytea, NULL::bytea", _NOTHING, query.time_range
    if query.has_rollups:
        wanted = _OF_HOURS if query.tier == "hour" and time_range.edges else _OF_DAYS
        keys = "NULL::bytea" if query.ranks else codec.SENT_KEYS
        rolled = _ROLLED.format(sent=query.sent, keys=keys, tier=query.tier, wanted=wanted)
        days = _DAYS if query.tier == "hour" else _NOTHING
    samples = _samples(time_range.edges) if time_range.edges else _NOTHING
    newest = _NEWEST.format(months=months("time", _recent(time_range), time_range.end))
    return _ALL.format(
        rolled=rolled, days=days, dirty=_DIRTY, newest=newest, gone=_GONE_BEFORE, samples=samples
    )


def _samples(ranges: Sequence[tuple[int, int]]) -> str:
    return _SAMPLES.format(sent=codec.SENT_SAMPLE, each=_in_ranges(ranges))


def _in_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Return the SQL of a UNION of *ranges*: each branch prunes partitions by itself."""
    return " UNION ALL ".join(
        _IN_RANGE.format(at=at, months=months("time", moment(start), moment(end)))
        for at, (start, end) in enumerate(ranges)
    )


def _recent(time_range: TimeRange) -> datetime:
    """Return a time from which on the newest sample of *time_range* nearly always lies."""
    return max(time_range.start, time_range.end - _RECENT)


def _parameters(query: _Query, ranges: Iterable[tuple[int, int]]) -> dict[str, object]:
    bounds = {
        name: moment(time)
        for at, (start, end) in enumerate(ranges)
        for name, time in ((f"start_{at}", start), (f"end_{at}", end))
    }
    time_range = query.time_range
    return {
        "metric": query.metric,
        "start": time_range.start,
        "end": time_range.end,
        "recent": _recent(time_range),
        "first_day": moment(time_range.first_day),
        "last_day": moment(time_range.last_day),
        "first_hour": moment(time_range.first_hour),
        "last_hour": moment(time_range.last_hour),
        "most": query.most_samples + 1,
        **bounds,
    }


def _rollups(rows: bytes | None, keys: bytes | None, *, ranks: bool) -> RollupsAndSamples:
    """Decode rollups with their ranks or with their small sketches."""
    if ranks:
        rolled, ranked = codec.ranked(rows)
        return replace(_EMPTY, rolled=rolled, ranks=ranked)
    rolled = codec.rollups(rows)
    return replace(_EMPTY, rolled=rolled, entries=codec.small_sketch_entries(rolled, keys))


def _with_large_sketches(query: _Query, part: RollupsAndSamples) -> RollupsAndSamples:
    """Add the sketches that are too large to be sent key by key."""
    large = part.rolled["start"][part.rolled["passed"] > codec.SMALL_SKETCH]
    if query.ranks or not len(large):
        return part
    parameters = {"metric": query.metric, "buckets": [moment(start) for start in large]}
    statement = _ENTRIES.format(source=_LARGE_SKETCHES.format(tier=query.tier))
    (packed,) = binary.row(statement, parameters)
    return replace(part, entries=np.concatenate([part.entries, codec.sketch_entries(packed)]))


def _of_samples(
    query: _Query, ranges: Sequence[tuple[int, int]], samples: NDArray[np.void]
) -> RollupsAndSamples:
    """Return *samples*, which were read from *ranges*; if they are too many, return rollups of them."""
    if len(samples) <= query.most_samples:
        return replace(_EMPTY, samples=samples)
    entries = _NOTHING if query.ranks else _ENTRIES.format(source="SELECT * FROM aggregated")
    statement = _AGGREGATED.format(tier=query.tier, each=_in_ranges(ranges), sent=query.sent, entries=entries)
    rows, keys = binary.row(statement, _parameters(query, ranges))
    part = _rollups(rows, None, ranks=True) if query.ranks else replace(_EMPTY, rolled=codec.rollups(rows))
    return replace(part, entries=codec.sketch_entries(keys))


def _concatenated(parts: Sequence[RollupsAndSamples]) -> RollupsAndSamples:
    columns = zip(*((part.rolled, part.ranks, part.entries, part.samples) for part in parts), strict=True)
    return RollupsAndSamples(*map(np.concatenate, columns))


def _without(part: RollupsAndSamples, days: NDArray[np.int64]) -> RollupsAndSamples:
    """Return *part* without the rollups that start on *days* (midnights)."""
    rows, keys = (~np.isin(array["start"] // DAY * DAY, days) for array in (part.rolled, part.entries))
    ranks = part.ranks[rows] if len(part.ranks) else part.ranks
    return replace(part, rolled=part.rolled[rows], ranks=ranks, entries=part.entries[keys])


def _with_newest(result: QueryResult, metric_id: int) -> QueryResult:
    """Set ``newest_known_at`` of a *result* without recent samples: read its last day's newest sample."""
    starts = np.concatenate([result.rolled["start"], result.samples["time"]])
    if not len(starts):
        return result
    day = int(starts.max()) // DAY * DAY
    start, end = moment(day), moment(day + DAY)
    statement = _NEWEST.format(months=months("time", start, end))
    row = binary.row(statement, {"metric": metric_id, "recent": start, "end": end})
    return replace(result, newest_known_at=row[0] if row else None)
