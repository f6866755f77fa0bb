"""Compare the values of two series: in time, pair by pair, and at lags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import moment
from monitor.depot.samples import lags
from monitor.depot.samples.correlation import Correlation, correlation
from monitor.depot.samples.lags import LagCorrelation, Regression, Values
from monitor.depot.series.segments import segment_status
from monitor.models import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Series

_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class SeriesComparison:
    """Two metrics, *first* and *second*, with their values in a time range.

    Attributes:
        times: of the pairs, in microseconds since 1970: each value of the first metric with the latest one
            of the second, *lag_seconds* earlier.
        strongest: the lag with the largest rank correlation.
    """

    first: Metric
    second: Metric
    values: tuple[Values, Values]
    lag_seconds: float
    times: NDArray[np.int64]
    pairs: tuple[NDArray[np.float64], NDArray[np.float64]]
    correlation: Correlation
    regression: Regression | None
    lags: Sequence[LagCorrelation]
    strongest: LagCorrelation | None

    @property
    def rows(self) -> list[tuple[datetime, float, float]]:
        """The pairs, oldest first: time, value of the first metric, value of the second."""
        times = map(moment, self.times.tolist())
        return list(zip(times, self.pairs[0].tolist(), self.pairs[1].tolist(), strict=True))


def newest_metric(series: Series, name: str) -> Metric | None:
    """Return the metric *name* of the current segment of *series*, else of the newest that has it."""
    status = segment_status(series)
    order = {segment.pk: number for number, segment in enumerate(status.segments)}
    if status.current:
        order[status.current.pk] = len(order)
    found = Metric.objects.filter(segment__series=series, name=name).select_related("segment")
    return max(found, key=lambda metric: order.get(metric.segment_id, -1), default=None)


def compare(
    first: Metric, second: Metric, start: datetime | None, end: datetime, lag_seconds: float = 0.0
) -> SeriesComparison:
    """Return the comparison of two metrics from *start* until before *end*."""
    ours, theirs = (lags.newest_values(metric.pk, start, end) for metric in (first, second))
    lag = round(lag_seconds * _MICROSECONDS)
    times, y, x = lags.paired_at(ours, theirs, lag, lags.tolerance_of(ours, theirs))
    at_lags = lags.correlations(ours, theirs)
    return SeriesComparison(
        first=first,
        second=second,
        values=(ours, theirs),
        lag_seconds=lag_seconds,
        times=times,
        pairs=(y, x),
        correlation=correlation(y, x),
        regression=lags.regression(x, y),
        lags=at_lags,
        strongest=lags.strongest(at_lags),
    )
