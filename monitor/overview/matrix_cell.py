"""A cell of the overview: the series of a column at a site, counted by standing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monitor.overview.series_details import SeriesCell
from monitor.overview.series_states import (
    ELSEWHERE,
    HERE,
    MONITORING,
    PASSED,
    SKIPPED,
    SOMEWHERE,
    STALE,
    UNKNOWN,
)


@dataclass(frozen=True)
class MatrixCell:
    """The series of a column at one site.

    Attributes:
        counts: the number of series by standing, which is an index of ``STANDINGS``.
        newest: when the newest run ended.
        series: the series, if the column is a single series.
    """

    counts: tuple[int, ...]
    newest: datetime | None
    series: SeriesCell | None = None

    @property
    def series_count(self) -> int:
        return sum(self.counts)

    @property
    def worst(self) -> int:
        return max(standing for standing, count in enumerate(self.counts) if count)

    @property
    def words(self) -> str:
        count = self.counts[self.worst]
        return {
            HERE: f"{count} failed here",
            SOMEWHERE: f"{count} failed, site unknown",
            MONITORING: f"{count} monitoring fault{'' if count == 1 else 's'}",
            ELSEWHERE: f"{count} failed elsewhere",
            STALE: "all stale" if count == self.series_count else f"{count} stale",
            PASSED: "all passed" if count == self.series_count else f"{count} passed",
            SKIPPED: "all skipped" if count == self.series_count else f"{count} skipped",
            UNKNOWN: "no run yet",
        }[self.worst]
