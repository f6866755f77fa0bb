"""The mean of metrics by weekday and hour, in the zone of a reader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import moment
from monitor.depot.rollups import query
from monitor.depot.rollups.time_ranges import HOUR

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAYS, HOURS = 7, 24


@dataclass(frozen=True)
class HourOfWeek:
    """Rows: weekdays from Monday; columns: hours from midnight. *mean* is NaN without values."""

    passed: NDArray[np.int64]
    mean: NDArray[np.float64]


def by_hour_of_week(metrics: Iterable[int], start: datetime, end: datetime, zone: tzinfo) -> HourOfWeek:
    """Return the values of passed runs of *metrics* from *start* until before *end*, read by the hour.

    Days whose samples and hourly rollups were deleted are left out.
    """
    starts, counts, sums = [], [], []
    for metric in metrics:
        result = query.read(metric, start, end, tier="hour", ranks=True)
        samples = result.samples[result.samples["passed"]]
        starts += [result.rolled["start"], samples["time"] // HOUR * HOUR]
        counts += [result.rolled["passed"].astype(np.int64), np.ones(len(samples), np.int64)]
        sums += [result.rolled["passed"] * result.rolled["mean"], samples["value"]]
    every = np.concatenate(starts) if starts else np.empty(0, np.int64)
    hours, group = np.unique(every, return_inverse=True)
    local = [moment(hour).astimezone(zone) for hour in hours.tolist()]
    cells = np.array([time.weekday() * HOURS + time.hour for time in local], np.int64)[group]
    count = np.bincount(cells, np.concatenate(counts) if counts else None, minlength=DAYS * HOURS)
    total = np.bincount(cells, np.concatenate(sums) if sums else None, minlength=DAYS * HOURS)
    with np.errstate(invalid="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return HourOfWeek(count.astype(np.int64).reshape(DAYS, HOURS), mean.reshape(DAYS, HOURS))
