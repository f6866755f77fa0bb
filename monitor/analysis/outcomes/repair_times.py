"""Mean times between failures and to repair, of every series or of a selection of runs as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.analysis.outcomes.read import RunOutcomes


@dataclass(frozen=True)
class RepairTimes:
    """Sums over the outages of series; an outage lasts from a failed run to the next one that passed.

    Attributes:
        outages: how many began after a passed run.
        operating: the time that began with a passed run, each until the next run of the series.
        repairs: how many outages ended.
        repairing: the sum of their lengths.
    """

    outages: int = 0
    operating: timedelta = timedelta()
    repairs: int = 0
    repairing: timedelta = timedelta()

    @property
    def between(self) -> timedelta | None:
        """The mean time between failures: operating time per outage; None if none began."""
        return self.operating / self.outages if self.outages else None

    @property
    def to_repair(self) -> timedelta | None:
        """The mean time to repair: the mean length of the outages that ended; None if none has."""
        return self.repairing / self.repairs if self.repairs else None


def repair_times(outcomes: RunOutcomes) -> RepairTimes:
    """Return the times of all series together, of the days (UTC) that the range touches.

    Outages are measured from slot to slot: a series that runs once an hour knows them to an hour. One counts
    on the day on which it began; its length, and the time between two runs, on the day on which it ended.
    """
    return _times(*outcomes.repairs.tolist())


def repair_times_by_series(outcomes: RunOutcomes, series: Sequence[int]) -> Mapping[int, RepairTimes]:
    """Return the times of each of *series* by its key, as ``repair_times``."""
    sums = outcomes.repairs_of(np.array(series, np.int64)).tolist()
    return {key: _times(each) for key, each in zip(series, sums, strict=True)}


def _times(sums: tuple[int, int, int, int]) -> RepairTimes:
    outages, repairs, operating, repairing = sums
    return RepairTimes(outages, timedelta(microseconds=operating), repairs, timedelta(microseconds=repairing))
