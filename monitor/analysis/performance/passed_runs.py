"""Read the passed runs of a series: when each ran, and the durations of its stages and totals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import micros
from monitor.depot.samples import sample_arrays
from monitor.depot.samples.sample_arrays import before
from monitor.models import Metric, Run
from monitor.models.run import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from monitor.models import Series

# (i) all stages, (ii) without setup and cleanup, (iii) without setup, cleanup and queue
TOTALS = ("total.seconds", "total_essential.seconds", "total_core.seconds")
_STAGE = r"^stage\.[^.]+\.seconds$"


@dataclass(frozen=True)
class PassedRuns:
    """Passed runs in order of their slots. Times are microseconds since 1970, UTC.

    Attributes:
        started, ended: when each ran; a run without a known start began at its slot.
        segments: the key of the segment of each run.
        durations: by metric, the seconds of each run; NaN for a run without this metric.
    """

    slots: NDArray[np.int64]
    started: NDArray[np.int64]
    ended: NDArray[np.int64]
    segments: NDArray[np.int64]
    durations: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.slots)

    def where(self, is_chosen: NDArray[np.bool_]) -> PassedRuns:
        """Return the chosen runs, with the metrics that one of them has."""
        durations = {name: column[is_chosen] for name, column in self.durations.items()}
        return PassedRuns(
            self.slots[is_chosen],
            self.started[is_chosen],
            self.ended[is_chosen],
            self.segments[is_chosen],
            {name: column for name, column in durations.items() if not np.isnan(column).all()},
        )

    def of_newest_segment(self) -> PassedRuns:
        """Return the runs of the segment of the last run; durations of two segments are never mixed."""
        return self.where(self.segments == self.segments[-1:])

    def values(self, metric: str) -> NDArray[np.float64]:
        """Return the values of the runs that have *metric*."""
        column = self.durations[metric]
        return column[~np.isnan(column)]


def read(series: Series, start: datetime, end: datetime) -> PassedRuns:
    """Return the passed runs with slots from *start* until before *end*, of all segments.

    Raises:
        TooManySamples: a metric has more samples than are read at once.
    """
    metrics = Metric.objects.filter(segment__series=series)
    named = (metrics.filter(name__in=TOTALS) | metrics.filter(name__regex=_STAGE)).order_by("name", "pk")
    columns = [
        (metric, sample_arrays.read(metric.pk, start=start, end=before(end))) for metric in named.iterator()
    ]
    slots = np.unique(np.concatenate([np.empty(0, np.int64), *(rows["time"] for _, rows in columns)]))
    ended, segments = slots.copy(), np.zeros(len(slots), np.int64)
    durations: dict[str, NDArray[np.float64]] = {}
    for metric, rows in columns:
        places = np.searchsorted(slots, rows["time"])
        ended[places], segments[places] = rows["known_at"], metric.segment_id
        durations.setdefault(metric.name, np.full(len(slots), np.nan))[places] = rows["value"]
    measured = {name: column for name, column in durations.items() if not np.isnan(column).all()}
    return PassedRuns(slots, _started(series, slots, start, end), ended, segments, measured)


def _started(series: Series, slots: NDArray[np.int64], start: datetime, end: datetime) -> NDArray[np.int64]:
    runs = Run.objects.filter(
        series=series, slot__gte=start, slot__lt=end, state=State.PASSED, started_at__isnull=False
    )
    rows = runs.order_by("slot").values_list("slot", "started_at")
    times = np.array([(micros(slot), micros(at)) for slot, at in rows if at is not None], np.int64)
    started = slots.copy()
    if len(times):
        _, places, of_rows = np.intersect1d(slots, times[:, 0], return_indices=True)
        started[places] = times[of_rows, 1]
    return started
