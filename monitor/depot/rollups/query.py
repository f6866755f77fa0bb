"""What a metric came to in a stretch of time: rollups of its whole days, samples of the rest.

Samples are read of days that are in the stretch in part only, and of days that have changed since they were
rolled up: an answer never depends on what has been rolled up yet. It takes one statement, and another one
where there are such days in between. However many samples there are, few are read: of very many the database
says what they come to. Where samples have been taken away, rollups are all there is: of a day that is in the
stretch in part only there are its hours, if hours are asked for, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import numpy as np

from monitor.db import binary
from monitor.db.timestamps import micros, moment
from monitor.depot.engines.rollup_tables import AGGREGATES
from monitor.depot.rollups import codec
from monitor.depot.rollups.time_ranges import DAY, Stretch, between, days_of, since

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tier = Literal["hour", "day"]

MOST_SAMPLES = 1_000_000  # that are read; what more come to is told by the database

_LATELY = timedelta(days=32)  # nearly always the newest sample is in the last two parts of a stretch

_ROLLED = """
SELECT string_agg({sent}, ''::bytea ORDER BY bucket), {keys}
FROM monitor_{tier}rollup WHERE metric_id = %(metric)s AND {wanted}
"""
_GONE_BEFORE = """
SELECT gone_before FROM monitor_metric AS metric JOIN monitor_segment AS segment ON segment.id = segment_id
JOIN monitor_retentioncutoff AS horizon ON horizon.series_id = segment.series_id AND kind = 'samples'
WHERE metric.id = %(metric)s
"""
_OF_DAYS = "bucket >= %(first_day)s AND bucket < %(last_day)s"
_OF_HOURS = f"""bucket >= %(first_hour)s AND bucket < %(last_hour)s
AND ({_OF_DAYS} OR bucket < ({_GONE_BEFORE}))"""
_COUNTED = f"""
SELECT string_agg({codec.SENT_COUNT}, ''::bytea) FROM (
    SELECT bucket, key, count(*) AS many FROM ({{source}}) AS source, unnest(sketch) AS key GROUP BY 1, 2
) AS counted
"""  # noqa: S608
_LARGE = """
SELECT bucket, sketch FROM monitor_{tier}rollup WHERE metric_id = %(metric)s AND bucket = ANY (%(buckets)s)
"""
_MADE = f"""
WITH made AS MATERIALIZED (
    SELECT date_trunc('{{tier}}', time, 'UTC') AS bucket, {AGGREGATES} FROM ({{each}}) AS samples GROUP BY 1
)
SELECT (SELECT string_agg({{sent}}, ''::bytea ORDER BY bucket) FROM made), ({{counted}})
"""  # noqa: S608
_DAYS = """
SELECT string_agg(timestamptz_send(bucket), ''::bytea)
FROM monitor_dayrollup WHERE metric_id = %(metric)s AND bucket >= %(first_day)s AND bucket < %(last_day)s
"""
# Where its samples have been taken away a series' rollups are final, whatever is marked of all series.
_STALE = """
SELECT string_agg(timestamptz_send(day), ''::bytea)
FROM (
    SELECT DISTINCT date_trunc('day', hour, 'UTC') AS day
    FROM monitor_metric AS metric JOIN monitor_segment AS segment ON segment.id = segment_id
    JOIN monitor_dirtyhour AS mark ON mark.series_id = ANY (ARRAY[0, segment.series_id])
    WHERE metric.id = %(metric)s AND hour > %(start)s - interval '1 hour' AND hour < %(end)s AND NOT EXISTS (
        SELECT FROM monitor_retentioncutoff AS horizon
        WHERE horizon.series_id = segment.series_id AND kind = 'samples' AND hour < gone_before
    )
) AS stale
"""
_NEWEST = """
SELECT known_at FROM monitor_sample
WHERE metric_id = %(metric)s AND time >= %(lately)s AND time < %(end)s ORDER BY time DESC LIMIT 1
"""
_NOTHING = "SELECT NULL::bytea"
_SAMPLES = """
SELECT string_agg({sent}, ''::bytea) FROM (SELECT * FROM ({each}) AS each LIMIT %(most)s) AS samples
"""
_TOLD = "SELECT rolled.*, ({days}), ({stale}), ({newest}), ({gone}), ({samples}) FROM ({rolled}) AS rolled"
_AGAIN = f"SELECT ({{samples}}), ({_GONE_BEFORE})"
_IN_RANGE = """
SELECT time, value, passed FROM monitor_sample
WHERE metric_id = %(metric)s AND time >= %(start_{at})s AND time < %(end_{at})s
"""


@dataclass(frozen=True)
class Part:
    """*rolled* has rollups (``wire.ROLLED``), *samples* the rest (``wire.SAMPLE``), in no order. *counted*
    has the keys of the sketches of *rolled* (``wire.COUNTED``); or, if only ranks were asked for, *ranks* has
    a row for each of them with the keys of ``wire.PERCENTS``."""

    rolled: NDArray[np.void]
    ranks: NDArray[np.int64]
    counted: NDArray[np.void]
    samples: NDArray[np.void]


_NONE = Part(
    np.empty(0, codec.ROLLED),
    np.empty((0, len(codec.PERCENTS)), np.int64),
    np.empty(0, codec.COUNTED),
    np.empty(0, codec.SAMPLE),
)


@dataclass(frozen=True)
class Found(Part):
    """All of a stretch, nothing twice. *complete*: no hour of it has changed since it was rolled up.
    *newest_known_at* is when the newest sample of it became known. Samples from before *gone_before*, if it
    says so, have been taken away.
    """

    complete: bool
    newest_known_at: datetime | None
    gone_before: datetime | None

    def has_samples_from(self, start: datetime) -> bool:
        """Whether none from *start* on have been taken away."""
        return self.gone_before is None or self.gone_before <= start


@dataclass(frozen=True)
class _Question:
    """What is asked of a metric; at most so many samples are to be read in one statement."""

    metric: int
    stretch: Stretch
    tier: Tier
    ranks: bool
    most_samples: int

    @property
    def has_rollups(self) -> bool:
        """Whether something in the stretch may be rolled up."""
        if self.tier == "hour":
            return self.stretch.first_hour < self.stretch.last_hour
        return self.stretch.first_day < self.stretch.last_day

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
) -> Found:
    """What there is of a metric from *start* until before *end*, rolled up by *tier* where it can be; without
    one, all samples, if they are no more than *most_samples*.

    With *ranks* the sketches stay where they are. Where samples were more than *most_samples*, there are
    rollups of the same hours, or days, instead.
    """
    stretch = Stretch(start.astimezone(UTC), max(start, end).astimezone(UTC), has_days=tier is not None)
    asked = _Question(metric_id, stretch, tier or "day", ranks, most_samples)
    told = binary.row(_statement(asked), _parameters(asked, stretch.edges))
    rows, keys, days, stale, newest, gone_before, samples = told
    gone = micros(gone_before) if gone_before else 0
    edges = codec.samples(samples)
    if tier is None and len(edges) > most_samples:
        return read(metric_id, start, end, ranks=ranks, most_samples=most_samples)
    rolled, changed = _rolled(rows, keys, ranks=ranks), codec.times(stale)
    again = between(rolled.rolled["start"], codec.times(days), changed, stretch, gone)
    parts = [_of_samples(asked, since(gone, stretch.edges), edges[edges["time"] >= gone])]
    if again:
        rolled = _without(rolled, days_of(again))
        packed, gone_by_now = binary.row(_AGAIN.format(samples=_samples(again)), _parameters(asked, again))
        if gone_by_now != gone_before:  # taken away since: what the rollups say is final now
            return read(metric_id, start, end, tier=tier, ranks=ranks, most_samples=most_samples)
        parts.append(_of_samples(asked, again, codec.samples(packed)))
    whole = _together([_with_large(asked, rolled), *parts])
    found = Found(**vars(whole), complete=not len(changed), newest_known_at=newest, gone_before=gone_before)
    return found if newest else _with_newest(found, metric_id)


def samples_alone(found: Found) -> Found:
    """*found* without what is rolled up."""
    return replace(found, rolled=found.rolled[:0], ranks=found.ranks[:0], counted=found.counted[:0])


def _statement(asked: _Question) -> str:
    rolled, days, stretch = "SELECT NULL::bytea, NULL::bytea", _NOTHING, asked.stretch
    if asked.has_rollups:
        wanted = _OF_HOURS if asked.tier == "hour" and stretch.edges else _OF_DAYS
        keys = "NULL::bytea" if asked.ranks else codec.SENT_KEYS
        rolled = _ROLLED.format(sent=asked.sent, keys=keys, tier=asked.tier, wanted=wanted)
        days = _DAYS if asked.tier == "hour" else _NOTHING
    samples = _samples(stretch.edges) if stretch.edges else _NOTHING
    told = {"days": days, "stale": _STALE, "newest": _NEWEST, "gone": _GONE_BEFORE, "samples": samples}
    return _TOLD.format(rolled=rolled, **told)


def _samples(ranges: Sequence[tuple[int, int]]) -> str:
    return _SAMPLES.format(sent=codec.SENT_SAMPLE, each=_in_ranges(ranges))


def _in_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Each range is looked for in its own parts alone."""
    return " UNION ALL ".join(_IN_RANGE.format(at=at) for at in range(len(ranges)))


def _parameters(asked: _Question, ranges: Iterable[tuple[int, int]]) -> dict[str, object]:
    bounds = {
        name: moment(time)
        for at, (start, end) in enumerate(ranges)
        for name, time in ((f"start_{at}", start), (f"end_{at}", end))
    }
    stretch = asked.stretch
    return {
        "metric": asked.metric,
        "start": stretch.start,
        "end": stretch.end,
        "lately": max(stretch.start, stretch.end - _LATELY),
        "first_day": moment(stretch.first_day),
        "last_day": moment(stretch.last_day),
        "first_hour": moment(stretch.first_hour),
        "last_hour": moment(stretch.last_hour),
        "most": asked.most_samples + 1,
        **bounds,
    }


def _rolled(rows: bytes | None, keys: bytes | None, *, ranks: bool) -> Part:
    """Of sketches, those that were sent key by key."""
    if ranks:
        rolled, ranked = codec.ranked(rows)
        return replace(_NONE, rolled=rolled, ranks=ranked)
    rolled = codec.rolled(rows)
    return replace(_NONE, rolled=rolled, counted=codec.each_counted(rolled, keys))


def _with_large(asked: _Question, part: Part) -> Part:
    """*part* with the sketches that were too large to be sent key by key."""
    large = part.rolled["start"][part.rolled["passed"] > codec.FEW]
    if asked.ranks or not len(large):
        return part
    told = {"metric": asked.metric, "buckets": [moment(start) for start in large]}
    (packed,) = binary.row(_COUNTED.format(source=_LARGE.format(tier=asked.tier)), told)
    return replace(part, counted=np.concatenate([part.counted, codec.counted(packed)]))


def _of_samples(asked: _Question, ranges: Sequence[tuple[int, int]], samples: NDArray[np.void]) -> Part:
    """*samples* of *ranges* or, if they are too many, what all of these come to."""
    if len(samples) <= asked.most_samples:
        return replace(_NONE, samples=samples)
    counted = _NOTHING if asked.ranks else _COUNTED.format(source="SELECT * FROM made")
    made = _MADE.format(tier=asked.tier, each=_in_ranges(ranges), sent=asked.sent, counted=counted)
    rows, keys = binary.row(made, _parameters(asked, ranges))
    part = _rolled(rows, None, ranks=True) if asked.ranks else replace(_NONE, rolled=codec.rolled(rows))
    return replace(part, counted=codec.counted(keys))


def _together(parts: Sequence[Part]) -> Part:
    columns = zip(*((part.rolled, part.ranks, part.counted, part.samples) for part in parts), strict=True)
    return Part(*map(np.concatenate, columns))


def _without(part: Part, days: NDArray[np.int64]) -> Part:
    """*part* without what is rolled up of *days*."""
    rows, keys = (~np.isin(one["start"] // DAY * DAY, days) for one in (part.rolled, part.counted))
    ranks = part.ranks[rows] if len(part.ranks) else part.ranks
    return replace(part, rolled=part.rolled[rows], ranks=ranks, counted=part.counted[keys])


def _with_newest(found: Found, metric_id: int) -> Found:
    """The newest sample is where *found* ends, longer ago than is looked at first."""
    starts = np.concatenate([found.rolled["start"], found.samples["time"]])
    if not len(starts):
        return found
    day = int(starts.max()) // DAY * DAY
    told = binary.row(_NEWEST, {"metric": metric_id, "lately": moment(day), "end": moment(day + DAY)})
    return replace(found, newest_known_at=told[0] if told else None)
