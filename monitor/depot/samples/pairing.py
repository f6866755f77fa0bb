"""Values of an application, each with what a probe had said by then: what predictors are judged by."""

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
from monitor.depot.samples.sample_arrays import TooMany, before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

MOST_READ = sample_arrays.MOST  # values, of each of both: they lie in memory together
_SECOND = 1_000_000  # microseconds


class TooManyValues(Exception):
    """There are more than are paired at once; says of which of both, and how many are."""


@dataclass(frozen=True)
class Pairs(Freshness):
    """Column by column, in order of the application's time. Times are microseconds since 1970, UTC.

    *unpaired* values of the application came before any of the probe was known. It is always *complete*: no
    rollups are read. *newest_known_at* is of the values of both.
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
        """How old each value of the probe was: from its run's slot to that of the application."""
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
    """Every value of *application* from *start* until before *end* with the nearest earlier one of *probe*
    that was known *lag_seconds* (0 or more) before the application's slot: of those whose report had ended by
    then, the one of the latest slot. Values of passed runs only; with *known_by*, only what was known at that
    moment.

    Raises:
        TooManyValues: one of both has more than *most_read*.
    """
    lag = round(lag_seconds * _SECOND)
    with _named("the application"):
        runs = sample_arrays.read(
            application.pk, start=start, end=before(end), known_by=known_by, at_most=most_read
        )
    if not len(runs):
        return _pairs(runs, runs, lag)
    asked = runs["time"] - lag
    with _named("the probe"):
        known = _known_at_some_time(probe.pk, moment(asked[0]), moment(asked[-1]), known_by, most_read)
    return _pairs(runs, known, lag)


@contextlib.contextmanager
def _named(which: str) -> Iterator[None]:
    """Whose values are too many."""
    try:
        yield
    except TooMany as error:
        raise TooManyValues(f"{which} has {error} there") from error


def nearest_known(
    times: NDArray[np.int64], known_at: NDArray[np.int64], asked: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each time that is *asked* about, the index of the value with the latest of *times* (which ascend)
    that is not later, and was known by then; -1 where there is none.

    Late reports become known in another order than their times have: in the order in which they became known
    the latest time so far is a running maximum.
    """
    usable_at = np.maximum(times, known_at)
    order = np.argsort(usable_at, kind="stable")
    latest = np.concatenate([[-1], np.maximum.accumulate(order)])
    found: NDArray[np.int64] = latest[np.searchsorted(usable_at[order], asked, side="right")]
    return found


def _known_at_some_time(
    metric_id: int, first: datetime, last: datetime, known_by: datetime | None, most_read: int
) -> NDArray[np.void]:
    """Every value that may be the nearest known at any time from *first* to *last*: from the one that is at
    *first*, as later none of an earlier slot is."""
    by_then = min(first, known_by) if known_by else first
    nearest = sample_arrays.read(metric_id, end=first, known_by=by_then, newest=1)
    start = moment(nearest["time"][0]) if len(nearest) else None
    return sample_arrays.read(metric_id, start=start, end=last, known_by=known_by, at_most=most_read)


def _pairs(runs: NDArray[np.void], known: NDArray[np.void], lag: int) -> Pairs:
    nearest = nearest_known(known["time"], known["known_at"], runs["time"] - lag)
    has_one = nearest >= 0
    told = np.concatenate([runs["known_at"], known["known_at"]])
    return Pairs(
        complete=True,
        newest_known_at=moment(told.max()) if len(told) else None,
        application_time=runs["time"][has_one],
        application_value=runs["value"][has_one],
        probe_time=known["time"][nearest[has_one]],
        probe_value=known["value"][nearest[has_one]],
        unpaired=int(np.count_nonzero(~has_one)),
    )
