"""Pair each value of an application with the probe value known before it, to evaluate predictors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.db.timestamps import moment
from monitor.depot.rollups.statistics import Freshness
from monitor.depot.samples import sample_arrays
from monitor.depot.samples.sample_arrays import TooManySamples, before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

MOST_READ = sample_arrays.MOST  # values of each metric: both are in memory
_SECOND = 1_000_000  # microseconds


class TooManyValues(Exception):
    """A metric has more values than are paired at once; the message names the metric and the limit."""


@dataclass(frozen=True)
class Pairs(Freshness):
    """Columns in order of the application's time. Times are microseconds since 1970, UTC.

    *unpaired* counts values of the application before any probe value was known. Pairs are always *complete*,
    as no rollups are read. *newest_known_at* covers the values of both metrics.
    """

    application_time: NDArray[np.int64]
    application_value: NDArray[np.float64]
    probe_time: NDArray[np.int64]
    probe_value: NDArray[np.float64]
    unpaired: int

    def __len__(self) -> int:
        return len(self.application_time)

    @property
    def probe_age_seconds(self) -> NDArray[np.float64]:
        """Return, per pair, the seconds from the probe's slot to the application's slot."""
        return (self.application_time - self.probe_time) / _SECOND


def paired(
    application: Metric,
    probe: Metric,
    *,
    lag_seconds: float = 0.0,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    most_read: int = MOST_READ,
) -> Pairs:
    """Pair each value of *application* from *start* until before *end* with a value of *probe*.

    The probe value is the value with the latest slot among the values that were known *lag_seconds* (0 or
    more) before the application's slot. Only values of passed runs are paired; with *known_by*, only values
    that were known at *known_by*.

    Raises:
        TooManyValues: a metric has more values than *most_read*.
    """
    lag = round(lag_seconds * _SECOND)
    with _named("the application"):
        runs = sample_arrays.read(
            application.pk, start=start, end=before(end), known_by=known_by, at_most=most_read
        )
    if not len(runs):
        return _pairs(runs, runs, lag)
    times = runs["time"] - lag
    with _named("the probe"):
        candidates = _known_at_some_time(probe.pk, moment(times[0]), moment(times[-1]), known_by, most_read)
    return _pairs(runs, candidates, lag)


@contextlib.contextmanager
def _named(metric_text: str) -> Iterator[None]:
    """Turn ``TooManySamples`` into ``TooManyValues`` with a message that begins with *metric_text*."""
    try:
        yield
    except TooManySamples as error:
        raise TooManyValues(f"{metric_text} has {error} in the time window") from error


def nearest_known(
    times: NDArray[np.int64], known_at: NDArray[np.int64], moments: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each of *moments*, the index of the latest value known by then; -1 if no value was known.

    All arguments are microseconds since 1970; *times* ascend. Late data become known out of order, so the
    values are sorted by when they became known; the latest index known at any moment is then a running
    maximum.
    """
    usable_at = np.maximum(times, known_at)
    order = np.argsort(usable_at, kind="stable")
    latest = np.concatenate([[-1], np.maximum.accumulate(order)])
    indices: NDArray[np.int64] = latest[np.searchsorted(usable_at[order], moments, side="right")]
    return indices


def _known_at_some_time(
    metric_id: int, first: datetime, last: datetime, known_by: datetime | None, most_read: int
) -> NDArray[np.void]:
    """Return every value that may be the latest known value at some time from *first* to *last*.

    The earliest of these values is the latest value known at *first*.
    """
    by_then = min(first, known_by) if known_by else first
    nearest = sample_arrays.read(metric_id, end=first, known_by=by_then, newest=1)
    start = moment(nearest["time"][0]) if len(nearest) else None
    return sample_arrays.read(metric_id, start=start, end=last, known_by=known_by, at_most=most_read)


def _pairs(runs: NDArray[np.void], candidates: NDArray[np.void], lag: int) -> Pairs:
    nearest = nearest_known(candidates["time"], candidates["known_at"], runs["time"] - lag)
    has_one = nearest >= 0
    known_at = np.concatenate([runs["known_at"], candidates["known_at"]])
    return Pairs(
        complete=True,
        newest_known_at=moment(known_at.max()) if len(known_at) else None,
        application_time=runs["time"][has_one],
        application_value=runs["value"][has_one],
        probe_time=candidates["time"][nearest[has_one]],
        probe_value=candidates["value"][nearest[has_one]],
        unpaired=int(np.count_nonzero(~has_one)),
    )
