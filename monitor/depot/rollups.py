"""What a metric came to in a stretch of time: rollups of its whole days, samples of the rest.

Samples are read of days that are in the stretch in part only, and of days that have changed since they were
rolled up: an answer never depends on what has been rolled up yet. It takes one statement, and another one
where there are such days in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from monitor.depot import binary
from monitor.depot.arrays import EPOCH, micros, moment

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tier = Literal["hour", "day"]

# Times are microseconds since 1970, UTC. Without passed runs mean and stdev are 0, min and max infinite; with
# one stdev is 0.
_COLUMNS = ("mean", "min", "max", "stdev")
ROLLED = np.dtype([("start", "<i8"), ("n", "<i4"), ("passed", "<i4"), *((name, "<f8") for name in _COLUMNS)])
SAMPLE = np.dtype([("time", "<i8"), ("value", "<f8"), ("passed", "?")])
PERCENTS = (50, 95, 99)
HOUR, DAY = 3_600_000_000, 86_400_000_000  # in microseconds

_ARRAY_HEADER = 20  # bytes, of an array on the wire; then a length and a key each
_KEY_ON_WIRE = np.dtype([("bytes", ">i4"), ("key", ">i2")])
_MOST_RANGES = 16  # of samples in one statement; more are put together, with the days between them
_LATELY = timedelta(days=32)  # nearly always the newest sample is in the last two parts of a stretch

_SENT_ROLLUP = (
    "timestamptz_send(bucket) || int4send(n) || int4send(passed) || float8send(coalesce(mean, 0))"
    " || float8send(coalesce(min, 'Infinity')) || float8send(coalesce(max, '-Infinity'))"
    " || float8send(coalesce(stdev, 0))"
)
_SENT_RANKS = "".join(
    f" || int2send(coalesce(sketch[({q} * passed + 99) / 100], 0::smallint))" for q in PERCENTS
)
_SENT_SAMPLE = "timestamptz_send(time) || float8send(value) || boolsend(passed)"
_ROLLED = """
SELECT string_agg({sent}, ''::bytea ORDER BY bucket), {keys}
FROM monitor_{tier}rollup WHERE metric_id = %(metric)s AND bucket >= %(first_day)s AND bucket < %(last_day)s
"""
_WHOLE_KEYS = "string_agg(array_send(sketch), ''::bytea ORDER BY bucket)"
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
    JOIN monitor_stalehour AS mark ON mark.series_id = ANY (ARRAY[0, segment.series_id])
    WHERE metric.id = %(metric)s AND hour > %(start)s - interval '1 hour' AND hour < %(end)s AND NOT EXISTS (
        SELECT FROM monitor_horizon AS horizon
        WHERE horizon.series_id = segment.series_id AND kind = 'samples' AND hour < gone_before
    )
) AS stale
"""
_NEWEST = """
SELECT known_at FROM monitor_sample
WHERE metric_id = %(metric)s AND time >= %(lately)s AND time < %(end)s ORDER BY time DESC LIMIT 1
"""
_NOTHING = "SELECT NULL::bytea"
_SAMPLES = "SELECT string_agg({sent}, ''::bytea) FROM ({each}) AS samples"
_TOLD = "SELECT rolled.*, ({days}), ({stale}), ({newest}), ({samples}) FROM ({rolled}) AS rolled"
_IN_RANGE = """
SELECT time, value, passed FROM monitor_sample
WHERE metric_id = %(metric)s AND time >= %(start_{at})s AND time < %(end_{at})s
"""


@dataclass(frozen=True)
class Found:
    """All of a stretch, nothing twice.

    *rolled* has rollups (``ROLLED``), *samples* the rest (``SAMPLE``, in no order). *keys* are those of the
    sketches of *rolled*, one after the other; or, if only ranks were asked for, a row for each with those of
    ``PERCENTS``. *complete*: no hour of it has changed since it was rolled up. *newest_known_at* is when the
    newest sample of it became known.
    """

    rolled: NDArray[np.void]
    keys: NDArray[np.int64]
    samples: NDArray[np.void]
    complete: bool
    newest_known_at: datetime | None


@dataclass(frozen=True)
class _Stretch:
    """From *start* until before *end*, and the whole days in it; with ``has_days=False`` there are none."""

    start: datetime
    end: datetime
    has_days: bool

    @property
    def first_day(self) -> int:
        return -(-micros(self.start) // DAY) * DAY

    @property
    def last_day(self) -> int:
        """The midnight that ends the last of them."""
        return max(micros(self.end) // DAY * DAY, self.first_day) if self.has_days else self.first_day

    @property
    def edges(self) -> list[tuple[int, int]]:
        """What is left on both sides of them."""
        start, end = micros(self.start), micros(self.end)
        sides = ((start, self.first_day), (self.last_day, end))
        ranges = ((start, end),) if self.first_day == self.last_day else sides
        return [(first, last) for first, last in ranges if first < last]


def read(
    metric_id: int, start: datetime, end: datetime, *, tier: Tier | None = "day", ranks: bool = False
) -> Found:
    """What there is of a metric from *start* until before *end*, rolled up by *tier* where it can be; without
    one, all samples.

    With *ranks* the sketches stay where they are, and ``Found.keys`` are those of some percentiles.
    """
    stretch = _Stretch(start.astimezone(UTC), max(start, end).astimezone(UTC), has_days=tier is not None)
    told = _row(_statement(stretch, tier, ranks=ranks), _parameters(metric_id, stretch, stretch.edges))
    rows, keys, days, stale, newest, samples = told
    rolled, keys = _ranked(rows) if ranks else _sketched(rows, keys)
    changed = _times(stale)
    between = _between(rolled, _times(days), changed, stretch)
    if len(between):
        gone = np.isin(rolled["start"] // DAY * DAY, _days(between))
        rolled, keys = _without(gone, rolled, keys, ranks=ranks)
        more = _row(_samples(between), _parameters(metric_id, stretch, between))
        samples = (samples or b"") + (more[0] or b"")
    found = Found(rolled, keys, _of_wire(samples, SAMPLE, "time"), not len(changed), newest)
    return found if newest else _with_newest(found, metric_id)


def samples_alone(found: Found) -> Found:
    """*found* without what is rolled up."""
    return replace(found, rolled=found.rolled[:0], keys=np.empty(0, np.int64))


def _statement(stretch: _Stretch, tier: Tier | None, *, ranks: bool) -> str:
    rolled, days = "SELECT NULL::bytea, NULL::bytea", _NOTHING
    if stretch.first_day < stretch.last_day:
        sent = _SENT_ROLLUP + (_SENT_RANKS if ranks else "")
        rolled = _ROLLED.format(sent=sent, keys="NULL::bytea" if ranks else _WHOLE_KEYS, tier=tier)
        days = _DAYS if tier == "hour" else _NOTHING
    samples = _samples(stretch.edges) if stretch.edges else _NOTHING
    return _TOLD.format(rolled=rolled, days=days, stale=_STALE, newest=_NEWEST, samples=samples)


def _samples(ranges: Sequence[tuple[int, int]]) -> str:
    """Each range is looked for in its own parts alone."""
    each = " UNION ALL ".join(_IN_RANGE.format(at=at) for at in range(len(ranges)))
    return _SAMPLES.format(sent=_SENT_SAMPLE, each=each)


def _parameters(metric_id: int, stretch: _Stretch, ranges: Iterable[tuple[int, int]]) -> dict[str, object]:
    bounds = {
        name: moment(time)
        for at, (start, end) in enumerate(ranges)
        for name, time in ((f"start_{at}", start), (f"end_{at}", end))
    }
    return {
        "metric": metric_id,
        "start": stretch.start,
        "end": stretch.end,
        "lately": max(stretch.start, stretch.end - _LATELY),
        "first_day": moment(stretch.first_day),
        "last_day": moment(stretch.last_day),
        **bounds,
    }


def _row(query: str, parameters: Mapping[str, object]) -> Any:
    """The one row that *query* gives, in binary: Django's own cursors know texts only."""
    with binary.cursor() as cursor:
        return cursor.execute(query, parameters, binary=True).fetchone()


def _of_wire(packed: bytes | None, dtype: np.dtype[np.void], time: str) -> NDArray[np.void]:
    found = np.frombuffer(packed or b"", dtype.newbyteorder(">")).astype(dtype)
    found[time] += EPOCH
    return found


def _times(packed: bytes | None) -> NDArray[np.int64]:
    return np.frombuffer(packed or b"", ">i8").astype(np.int64) + EPOCH


def _ranked(packed: bytes | None) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Rollups, and of each the keys of ``PERCENTS``."""
    together = np.dtype([("rolled", ROLLED), ("keys", "<i2", len(PERCENTS))])
    found = np.frombuffer(packed or b"", together.newbyteorder(">"))
    rolled = found["rolled"].astype(ROLLED)
    rolled["start"] += EPOCH
    return rolled, found["keys"].astype(np.int64)


def _sketched(packed: bytes | None, sketches: bytes | None) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Rollups, and the keys of all of them."""
    rolled = _of_wire(packed, ROLLED, "start")
    parts, at = [np.empty(0, np.int64)], 0
    for count in rolled["passed"].tolist():
        if count:
            parts.append(np.frombuffer(sketches or b"", _KEY_ON_WIRE, count, at + _ARRAY_HEADER)["key"])
            at += _ARRAY_HEADER + _KEY_ON_WIRE.itemsize * count
    return rolled, np.concatenate(parts).astype(np.int64)


def _between(
    rolled: NDArray[np.void], days: NDArray[np.int64], changed: NDArray[np.int64], stretch: _Stretch
) -> list[tuple[int, int]]:
    """What of the whole days is to be read from samples: those that have changed, and those of *days* that no
    hours are kept of."""
    sparse = np.setdiff1d(days, rolled["start"] // DAY * DAY)
    wanted = np.union1d(changed, sparse)
    wanted = wanted[(wanted >= stretch.first_day) & (wanted < stretch.last_day)]
    if not len(wanted):
        return []
    gaps = np.diff(wanted)
    least = np.sort(gaps)[-_MOST_RANGES + 1] if len(gaps) >= _MOST_RANGES else DAY
    groups = np.split(wanted, np.flatnonzero(gaps > max(least, DAY)) + 1)
    return [(int(group[0]), int(group[-1]) + DAY) for group in groups]


def _days(ranges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    return np.concatenate([np.arange(start, end, DAY) for start, end in ranges])


def _without(
    gone: NDArray[np.bool_], rolled: NDArray[np.void], keys: NDArray[np.int64], *, ranks: bool
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    return rolled[~gone], keys[~(gone if ranks else np.repeat(gone, rolled["passed"]))]


def _with_newest(found: Found, metric_id: int) -> Found:
    """The newest sample is where *found* ends, longer ago than is looked at first."""
    starts = np.concatenate([found.rolled["start"], found.samples["time"]])
    if not len(starts):
        return found
    day = int(starts.max()) // DAY * DAY
    told = _row(_NEWEST, {"metric": metric_id, "lately": moment(day), "end": moment(day + DAY)})
    return replace(found, newest_known_at=told[0] if told else None)
