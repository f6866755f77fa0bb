"""What a metric came to: in one stretch of time, or hour by hour, day by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from monitor.depot import merging, rollups
from monitor.depot.arrays import moment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

Every = Literal["hour", "day", "week", "month", "year"]
EVERY: tuple[Every, ...] = ("hour", "day", "week", "month", "year")
_TIERS: dict[Every, rollups.Tier] = {"hour": "hour", "day": "day"}
_LENGTHS: dict[Every, int] = {"hour": rollups.HOUR, "day": rollups.DAY}


@dataclass(frozen=True)
class Freshness:
    """*complete*: no hour of it has changed since it was rolled up; if one has, its day was read sample by
    sample. *newest_known_at* is when the newest value became known; None: there is none."""

    complete: bool
    newest_known_at: datetime | None

    def age_seconds(self, now: datetime) -> float | None:
        """How old the data are: since when their newest value is known."""
        return None if self.newest_known_at is None else (now - self.newest_known_at).total_seconds()


@dataclass(frozen=True)
class Statistics(Freshness):
    """Of one stretch of time, in *unit*.

    *n* counts values, *passed* those of passed runs; all else is of these: None where there are none, *stdev*
    (of a sample: n - 1) also where there is one. A quantile is the least value that so many do not exceed:
    within 1 % (``monitor.depot.sketch``), exact within a day. All else is exact.
    """

    n: int
    passed: int
    mean: float | None
    min: float | None
    max: float | None
    stdev: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    unit: str


class Bucket(NamedTuple):
    """One hour, day, ... from *start* (UTC); the rest as in ``Statistics``."""

    start: datetime
    n: int
    passed: int
    mean: float | None
    min: float | None
    max: float | None
    stdev: float | None
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True)
class Buckets(Freshness):
    """In order; those without values are absent. The first and the last have what is in the stretch only."""

    every: Every
    unit: str
    buckets: Sequence[Bucket]


NOTHING = merging.Figures(0, 0, *[None] * 7)


def statistics(metric: Metric, start: datetime, end: datetime) -> Statistics:
    """Of the values of *metric* from *start* until before *end*."""
    found = rollups.read(metric.pk, start, end)
    rows = merging.merged(found, np.zeros_like)
    figures = rows[0][1] if rows else NOTHING
    return Statistics(found.complete, found.newest_known_at, *figures, unit=metric.unit)


def statistics_by(metric: Metric, start: datetime, end: datetime, every: Every = "day") -> Buckets:
    """Of the values of *metric* from *start* until before *end*, *every* hour, day, week (from Monday), month
    or year, UTC."""
    tier = _TIERS.get(every)
    found = rollups.read(metric.pk, start, end, tier=tier or "day", ranks=tier is not None)
    rows = (
        _rolled_and_rest(found, every) if tier else merging.merged(found, lambda times: _starts(times, every))
    )
    buckets = [Bucket(moment(at), *figures) for at, figures in rows]
    return Buckets(found.complete, found.newest_known_at, every, metric.unit, buckets)


def _rolled_and_rest(found: rollups.Found, every: Every) -> list[tuple[int, merging.Figures]]:
    """Each rollup is a bucket, and what there are samples of are others."""
    rows = merging.each(found)
    if len(found.samples):
        rest = rollups.samples_alone(found)
        rows += merging.merged(rest, lambda times: _starts(times, every))
        rows.sort(key=itemgetter(0))
    return rows


def _starts(times: NDArray[np.int64], every: Every) -> NDArray[np.int64]:
    """When what lies at each of *times* (microseconds since 1970) begins."""
    length = _LENGTHS.get(every)
    if length is not None:
        return times // length * length
    if every == "week":
        days = times // rollups.DAY
        return (days - (days + 3) % 7) * rollups.DAY  # 1970 began on a Thursday
    unit = {"month": "M", "year": "Y"}[every]
    return times.astype("M8[us]").astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64)
