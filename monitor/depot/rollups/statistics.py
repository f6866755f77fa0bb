"""What a metric came to: in one stretch of time, or hour by hour, day by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from monitor.db.timestamps import moment
from monitor.depot.rollups import combine, query
from monitor.depot.rollups.combine import Figures
from monitor.depot.rollups.time_ranges import DAY, HOUR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

Every = Literal["hour", "day", "week", "month", "year"]
EVERY: tuple[Every, ...] = ("hour", "day", "week", "month", "year")
MOST_READ = query.MOST_SAMPLES
_TIERS: dict[Every, query.Tier] = {"hour": "hour", "day": "day"}
_LENGTHS: dict[Every, int] = {"hour": HOUR, "day": DAY}


def seconds_since(then: datetime, now: datetime) -> float:
    """The clock of who says when it was may be ahead of ours; then it is as if it were just now."""
    return max((now - then).total_seconds(), 0.0)


@dataclass(frozen=True)
class Freshness:
    """*complete*: no hour of it has changed since it was rolled up; if one has, its day was read sample by
    sample. *newest_known_at* is when the newest value became known; None: there is none, or its sample has
    been taken away."""

    complete: bool
    newest_known_at: datetime | None

    def age_seconds(self, now: datetime) -> float | None:
        """How old the data are: since when their newest value is known."""
        return None if self.newest_known_at is None else seconds_since(self.newest_known_at, now)


@dataclass(frozen=True)
class Statistics(Freshness):
    """Of one time range, in *unit*. Quantiles are within 1 % (``ddsketch``), exact within a day; all else
    is exact."""

    figures: Figures
    unit: str


class Bucket(Figures, frozen=True, gc=False, kw_only=True):
    """One hour, day, ... from *start* (UTC)."""

    start: datetime


@dataclass(frozen=True)
class Buckets(Freshness):
    """In order; those without values are absent. The first and the last have what is in the stretch only."""

    every: Every
    unit: str
    buckets: Sequence[Bucket]


def statistics(metric: Metric, start: datetime, end: datetime, *, most_read: int = MOST_READ) -> Statistics:
    """Of the values of *metric* from *start* until before *end*. What more samples than *most_read* come to
    is told by the database."""
    found = query.read(metric.pk, start, end, most_samples=most_read)
    rows = combine.merged(found, np.zeros_like)
    figures = rows[0][1] if rows else Figures()
    return Statistics(found.complete, found.newest_known_at, figures, metric.unit)


def statistics_by(
    metric: Metric,
    start: datetime,
    end: datetime,
    every: Every = "day",
    *,
    most_read: int = MOST_READ,
) -> Buckets:
    """Of the values of *metric* from *start* until before *end*, *every* hour, day, week (from Monday), month
    or year, UTC; *most_read* as by ``statistics``."""
    tier = _TIERS.get(every)
    has_ranks = tier is not None
    found = query.read(metric.pk, start, end, tier=tier or "day", ranks=has_ranks, most_samples=most_read)
    rows = (
        _rolled_and_rest(found, every) if tier else combine.merged(found, lambda times: _starts(times, every))
    )
    buckets = [Bucket(*msgspec.structs.astuple(figures), start=moment(at)) for at, figures in rows]
    return Buckets(found.complete, found.newest_known_at, every, metric.unit, buckets)


def _rolled_and_rest(found: query.Found, every: Every) -> list[tuple[int, Figures]]:
    """Each rollup is a bucket, and what there are samples of are others."""
    rows = combine.each(found)
    if len(found.samples):
        rest = query.samples_alone(found)
        rows += combine.merged(rest, lambda times: _starts(times, every))
    return sorted(rows, key=itemgetter(0))


def _starts(times: NDArray[np.int64], every: Every) -> NDArray[np.int64]:
    """When what lies at each of *times* (microseconds since 1970) begins."""
    length = _LENGTHS.get(every)
    if length is not None:
        return times // length * length
    if every == "week":
        days = times // DAY
        return (days - (days + 3) % 7) * DAY  # 1970 began on a Thursday
    unit = {"month": "M", "year": "Y"}[every]
    return times.astype("M8[us]").astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64)
