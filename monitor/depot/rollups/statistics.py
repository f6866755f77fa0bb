"""Compute statistics of a metric over a time range, or by hour, day, week, month or year."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from monitor.core.db.timestamps import moment
from monitor.depot.rollups import combine, query
from monitor.depot.rollups.combine import SummaryStatistics
from monitor.depot.rollups.time_ranges import DAY, HOUR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

Every = Literal["hour", "day", "week", "month", "year"]
BAND = (10, 50, 90)  # percent
EVERY: tuple[Every, ...] = ("hour", "day", "week", "month", "year")
MOST_READ = query.MOST_SAMPLES
_TIERS: dict[Every, query.Tier] = {"hour": "hour", "day": "day"}
_LENGTHS: dict[Every, int] = {"hour": HOUR, "day": DAY}


def seconds_since(then: datetime, now: datetime) -> float:
    """Return the seconds from *then* to *now*, at least 0: the clock of a reporter may be ahead of ours."""
    return max((now - then).total_seconds(), 0.0)


@dataclass(frozen=True)
class Freshness:
    """How current the values of a time range are.

    Attributes:
        complete: whether no hour of the range is dirty; the days of dirty hours were read from samples.
        newest_known_at: time at which the newest value became known; None if there are no values, or if the
            sample of the newest value was deleted.
    """

    complete: bool
    newest_known_at: datetime | None

    def age_seconds(self, now: datetime) -> float | None:
        """Return the seconds since the newest value became known; None if ``newest_known_at`` is None."""
        return None if self.newest_known_at is None else seconds_since(self.newest_known_at, now)


@dataclass(frozen=True)
class IntervalBands(Freshness):
    """Columns of statistics of hours, days, ... of a metric; the first and the last are cut off at the ends.

    The columns of *quantiles* are ``BAND``: within 1 % (``ddsketch``).
    """

    columns: combine.Bands


@dataclass(frozen=True)
class Statistics(Freshness):
    """Statistics of one time range, in *unit*.

    Quantiles are exact for a range within one day, and within 1 % for other ranges (``ddsketch``). All other
    fields are exact.
    """

    figures: SummaryStatistics
    unit: str


class StatisticsBucket(SummaryStatistics, frozen=True, gc=False, kw_only=True):
    """The statistics of one hour, day, ... from *start* (UTC)."""

    start: datetime


@dataclass(frozen=True)
class StatisticsBuckets(Freshness):
    """Non-empty buckets in order. The first and the last are cut off at the ends of the time range."""

    every: Every
    unit: str
    buckets: Sequence[StatisticsBucket]


def statistics(metric: Metric, start: datetime, end: datetime, *, most_read: int = MOST_READ) -> Statistics:
    """Return statistics of *metric* from *start* until before *end*.

    More than *most_read* samples are aggregated by the database.
    """
    result = query.read(metric.pk, start, end, most_samples=most_read)
    rows = combine.merged(result, np.zeros_like)
    figures = rows[0][1] if rows else SummaryStatistics()
    return Statistics(result.complete, result.newest_known_at, figures, metric.unit)


def statistics_by(
    metric: Metric,
    start: datetime,
    end: datetime,
    every: Every = "day",
    *,
    most_read: int = MOST_READ,
) -> StatisticsBuckets:
    """Return statistics by hour, day, week (from Monday), month or year, in UTC; see ``statistics``."""
    tier = _TIERS.get(every)
    has_ranks = tier is not None
    result = query.read(metric.pk, start, end, tier=tier or "day", ranks=has_ranks, most_samples=most_read)
    rows = (
        _rollups_and_samples(result, every)
        if tier
        else combine.merged(result, lambda times: interval_starts(times, every))
    )
    buckets = [StatisticsBucket(*msgspec.structs.astuple(figures), start=moment(at)) for at, figures in rows]
    return StatisticsBuckets(result.complete, result.newest_known_at, every, metric.unit, buckets)


def bands_by(
    metric_id: int, start: datetime, end: datetime, every: Every, *, has_quantiles: bool = True
) -> IntervalBands:
    """Return the values of passed runs by hour, day, week (from Monday), month or year, in UTC.

    Without quantiles no sketches are read.
    """
    tier, percents = _TIERS.get(every, "day"), BAND if has_quantiles else ()
    result = query.read(metric_id, start, end, tier=tier, ranks=not has_quantiles)
    columns = combine.bands(result, lambda times: interval_starts(times, every), percents)
    return IntervalBands(result.complete, result.newest_known_at, columns)


def _rollups_and_samples(result: query.QueryResult, every: Every) -> list[tuple[int, SummaryStatistics]]:
    """Return a bucket for each rollup and for each hour or day read from samples."""
    rows = combine.per_rollup(result)
    if len(result.samples):
        rest = query.without_rollups(result)
        rows += combine.merged(rest, lambda times: interval_starts(times, every))
    return sorted(rows, key=itemgetter(0))


def interval_starts(times: NDArray[np.int64], every: Every) -> NDArray[np.int64]:
    """Return the start of the bucket of each of *times* (microseconds since 1970)."""
    length = _LENGTHS.get(every)
    if length is not None:
        return times // length * length
    if every == "week":
        days = times // DAY
        return (days - (days + 3) % 7) * DAY  # 1970 began on a Thursday
    unit = {"month": "M", "year": "Y"}[every]
    return times.astype("M8[us]").astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64)
