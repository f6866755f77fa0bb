"""The durations that the metrics of a run are expected to have, by the passed runs before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.analysis.performance.expected_durations_sql import quantiles_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from monitor.models import Segment

NEWEST_RUNS = 50
FEWEST_RUNS = 5  # fewer do not give an interval of 80 %
SPAN = timedelta(days=90)


@dataclass(frozen=True)
class ExpectedDuration:
    """The quantiles 10 %, 50 % and 90 % of the *runs* newest passed runs before a run, in seconds."""

    low: float
    median: float
    high: float
    runs: int


def expected_durations(
    segment: Segment, names: Iterable[str], before: datetime
) -> Mapping[str, ExpectedDuration]:
    """Return by name the expected values of the metrics *names* of *segment* for a run at *before*.

    They are those of at most ``NEWEST_RUNS`` passed runs of ``SPAN``; a metric with fewer than
    ``FEWEST_RUNS`` values is absent.
    """
    rows = quantiles_before(segment.pk, sorted(set(names)), before - SPAN, before, NEWEST_RUNS)
    return {
        name: ExpectedDuration(low, median, high, runs)
        for name, runs, (low, median, high) in rows
        if runs >= FEWEST_RUNS
    }
