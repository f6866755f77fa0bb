"""The history of a metric in as many points as somebody can use: nothing of its extremes is lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from monitor.db.timestamps import micros
from monitor.depot.rollups import query
from monitor.depot.rollups.statistics import Freshness
from monitor.depot.rollups.time_ranges import DAY, HOUR
from monitor.depot.samples import sample_arrays
from monitor.depot.samples.m4 import Rolled, kept, merged, rolled_up
from monitor.depot.samples.sample_arrays import before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

MOST_READ = 10_000  # samples, or rollups: what a few milliseconds are enough for
_SECOND = 1_000_000  # microseconds

Method = Literal["raw", "m4", "hours", "days"]


@dataclass(frozen=True)
class Downsampled(Freshness):
    """Column by column, in order of time (microseconds since 1970, UTC).

    By *method* ``raw`` these are all of the *n* values that there are; by ``m4`` those of them that a drawing
    needs (``downsample.kept``). By ``hours`` and ``days`` each is the mean of a stretch of *step_seconds*
    that begins at its time, with its *lowest* and *highest* value; otherwise these three are None.
    """

    method: Method
    n: int
    time: NDArray[np.int64]
    value: NDArray[np.float64]
    lowest: NDArray[np.float64] | None = None
    highest: NDArray[np.float64] | None = None
    step_seconds: float | None = None


def downsample(
    metric: Metric, *, start: datetime, end: datetime, points: int, most_read: int = MOST_READ
) -> Downsampled:
    """The values of passed runs from *start* until before *end*, in at most *points* (``LEAST_POINTS`` or
    more).

    Where samples are more than *most_read*, or have been taken away, rollups are shown.
    """
    days = query.read(metric.pk, start, end, ranks=True)
    n = _count(days)
    if n <= most_read and days.has_samples_from(start):
        samples = sample_arrays.read(metric.pk, start=start, end=before(end))
        if len(samples) >= n:
            return _of_samples(samples, points, days)
    if (micros(end) - micros(start)) // HOUR <= most_read:
        hours = query.read(metric.pk, start, end, tier="hour", ranks=True)
        if _count(hours) >= n:
            return _of_rollups(hours, "hours", HOUR, points)
    return _of_rollups(days, "days", DAY, points)


def _count(found: query.Found) -> int:
    """How many values of passed runs there are."""
    return int(found.rolled["passed"].sum() + np.count_nonzero(found.samples["passed"]))


def _of_samples(samples: NDArray[np.void], points: int, found: query.Found) -> Downsampled:
    shown = samples[kept(samples["time"], samples["value"], points)]
    method: Method = "raw" if len(shown) == len(samples) else "m4"
    told = (found.complete, found.newest_known_at)
    return Downsampled(*told, method, len(samples), shown["time"], shown["value"])


def _of_rollups(found: query.Found, method: Method, span: int, points: int) -> Downsampled:
    rolled, step = merged(_together(found, span), span, points)
    return Downsampled(
        found.complete,
        found.newest_known_at,
        method,
        _count(found),
        rolled.start,
        rolled.mean,
        rolled.lowest,
        rolled.highest,
        step / _SECOND,
    )


def _together(found: query.Found, span: int) -> Rolled:
    """What is rolled up and what is not, by stretches of *span* microseconds."""
    samples = np.sort(found.samples[found.samples["passed"]], order="time")
    rest = rolled_up(samples["time"], samples["value"], span)
    rows = found.rolled[found.rolled["passed"] > 0]
    start = np.concatenate([rows["start"], rest.start])
    order = np.argsort(start)
    pairs = ((rows["passed"], rest.n), (rows["mean"], rest.mean), (rows["min"], rest.lowest))
    columns = [np.concatenate(pair)[order] for pair in (*pairs, (rows["max"], rest.highest))]
    return Rolled(start[order], *columns)
