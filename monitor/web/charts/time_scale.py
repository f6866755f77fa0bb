"""The time axis of a chart that the server draws: long pauses between runs are cut out.

Times are seconds since 1970, positions are shares of the width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

import numpy as np

from monitor.web.charts.axes import time_step, times_of_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PAUSE_OF_GAP = 20  # usual gaps: a longer pause is cut out
_HALF_RANGE_SECONDS = 300  # before and after a single run
_MOST_TICKS = 6
_PATTERNS = (  # least step, first and second line of labels
    (timedelta(days=1), "%m-%d", "%Y"),
    (timedelta(minutes=1), "%H:%M", "%m-%d"),
    (timedelta(0), "%H:%M:%S", "%m-%d"),
)


@dataclass(frozen=True)
class TimeScale:
    """An axis from *start* to *end* without *pauses*, pairs of times in order."""

    start: float
    end: float
    pauses: Sequence[tuple[float, float]] = ()
    zone: tzinfo = UTC  # of the labels

    @classmethod
    def of_runs(cls, times: Floats, zone: tzinfo) -> TimeScale:
        """Return the axis of runs at *times*, sorted, at least one."""
        if len(times) == 1:
            return cls(times[0] - _HALF_RANGE_SECONDS, times[0] + _HALF_RANGE_SECONDS, zone=zone)
        gaps = np.diff(times)
        usual = float(np.median(gaps))
        pauses = [
            (float(times[at] + usual), float(times[at + 1] - usual))
            for at in np.flatnonzero(gaps > PAUSE_OF_GAP * usual)
        ]
        return cls(float(times[0] - usual), float(times[-1] + 2 * usual), pauses, zone)

    @property
    def shown_seconds(self) -> float:
        return self.end - self.start - sum(last - first for first, last in self.pauses)

    def positions(self, times: Floats) -> Floats:
        """Return the share of the axis before each of *times*; below 0 and above 1 outside of it."""
        cut = sum((np.clip(times, first, last) - first for first, last in self.pauses), np.zeros(len(times)))
        shares: Floats = (times - self.start - cut) / (self.shown_seconds or 1.0)
        return shares

    def position(self, time: float) -> float:
        return float(self.positions(np.array([time]))[0])

    def ticks(self) -> Iterator[tuple[float, str, str]]:
        """Yield position and label in two lines of each tick; the second only where it changes."""
        step = time_step(self.shown_seconds, _MOST_TICKS)
        label_pattern, beside_pattern = next(each for least, *each in _PATTERNS if step >= least)
        least = 0.6 * step.total_seconds() / (self.shown_seconds or 1.0)
        edges = [self.start, *(edge for pause in self.pauses for edge in pause), self.end]
        before, context = -1.0, ""
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            for time in times_of_step(self._on_clocks(first), self._on_clocks(last), step):
                position = self.position(time.replace(tzinfo=self.zone).timestamp())
                if position - before >= least:
                    label, beside = time.strftime(label_pattern), time.strftime(beside_pattern)
                    yield position, label, beside if beside != context else ""
                    before, context = position, beside

    def _on_clocks(self, seconds: float) -> datetime:
        """Return the time on clocks of the zone as one of UTC: round steps are round there."""
        return datetime.fromtimestamp(seconds, self.zone).replace(tzinfo=UTC)
