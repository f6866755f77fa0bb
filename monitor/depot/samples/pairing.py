"""Pair each value of an application with the probe value known before it, to evaluate predictors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db import binary
from monitor.core.db.timestamps import micros, moment
from monitor.depot.rollups.statistics import Freshness
from monitor.depot.samples import sample_arrays
from monitor.depot.samples.sample_arrays import TooManySamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

MOST_READ = sample_arrays.MOST  # values of each metric: both are in memory
_SECOND = 1_000_000  # microseconds
_RECENT = timedelta(days=32)  # before the time window: nearly always holds a value of the probe

_RUNS = "metric_id = %(application)s AND passed AND time >= %(start)s AND time <= %(end)s AND {known}"
_NEAREST = """
SELECT time FROM monitor_sample
WHERE metric_id = %(probe)s AND passed AND known_at <= %(by_then)s
    AND time >= %(recent)s AND time <= %(first)s
ORDER BY time DESC LIMIT 1
"""
# The constant bound prunes partitions before the statement is executed.
_CANDIDATES = f"""
metric_id = %(probe)s AND passed AND time >= %(recent)s AND time >= coalesce(({_NEAREST}), %(recent)s)
AND time <= %(last)s AND {{known}}
"""
# No sample lies outside.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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
    start: datetime = EARLIEST,
    end: datetime = LATEST,
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
    first, last = (min(max(time, EARLIEST), LATEST) for time in (start, end))
    window = _Window(first, last - _MICROSECOND, timedelta(microseconds=lag), known_by, most_read)
    packed_runs, packed_candidates = binary.row(*_statement(application.pk, probe.pk, window))
    with _named("the application"):
        runs = sample_arrays.decode(packed_runs, most_read)
    if not len(runs):
        return _pairs(runs, runs, lag)
    with _named("the probe"):
        candidates = sample_arrays.decode(packed_candidates, most_read)
        if not len(candidates) or max(candidates[["time", "known_at"]][0]) > micros(window.first):
            candidates = _known_at_some_time(probe.pk, window)
    return _pairs(runs, candidates, lag)


@dataclass(frozen=True)
class _Window:
    """The time from *start* to *end* (included) in which values of the application are paired."""

    start: datetime
    end: datetime
    lag: timedelta
    known_by: datetime | None
    most_read: int

    @property
    def first(self) -> datetime:
        """Return the first time at which a value of the probe may have to be known."""
        return self.start - self.lag

    @property
    def last(self) -> datetime:
        return self.end - self.lag

    @property
    def by_then(self) -> datetime:
        """Return the time by which the latest value known at ``first`` was known."""
        return min(self.first, self.known_by) if self.known_by else self.first


def _statement(application_id: int, probe_id: int, window: _Window) -> tuple[str, dict[str, object]]:
    """Return the statement, with its parameters, that reads the values of both metrics.

    One statement for both: under load every round trip may wait for a processor.
    """
    known = "true" if window.known_by is None else "known_at <= %(known_by)s"
    runs, candidates = (
        sample_arrays.PACKED.format(where=where.format(known=known), order="ASC")
        for where in (_RUNS, _CANDIDATES)
    )
    return f"SELECT ({runs}), ({candidates})", {
        "application": application_id,
        "probe": probe_id,
        "start": window.start,
        "end": window.end,
        "recent": window.first - _RECENT,
        "first": window.first,
        "by_then": window.by_then,
        "last": window.last,
        "most": window.most_read + 1,
        **({} if window.known_by is None else {"known_by": window.known_by}),
    }


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


def _known_at_some_time(metric_id: int, window: _Window) -> NDArray[np.void]:
    """Return every value that may be the latest known value at some time of *window*, less its lag.

    The earliest of these values is the latest value known at its start.
    """
    nearest = sample_arrays.read(metric_id, end=window.first, known_by=window.by_then, newest=1)
    return sample_arrays.read(
        metric_id,
        start=moment(nearest["time"][0]) if len(nearest) else None,
        end=window.last,
        known_by=window.known_by,
        at_most=window.most_read,
    )


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
