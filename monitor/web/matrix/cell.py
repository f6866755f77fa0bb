"""A cell of the overview: the series of a column at a site, counted by standing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monitor.core.units import counted
from monitor.web.matrix.cell_figures import CellFigures
from monitor.web.status.series_details import SeriesCell
from monitor.web.status.series_states import (
    ELSEWHERE,
    HERE,
    MONITORING,
    PASSED,
    SKIPPED,
    SOMEWHERE,
    STALE,
    UNKNOWN,
)

_SINGLE_WORDS = {
    HERE: "failed here",
    SOMEWHERE: "failed, site unknown",
    MONITORING: "monitoring fault",
    ELSEWHERE: "failed elsewhere",
    STALE: "stale",
    PASSED: "passed",
    SKIPPED: "skipped",
    UNKNOWN: "no run yet",
}
_STANDING_WORDS = {
    HERE: "failed here",
    SOMEWHERE: "failed at an unknown site",
    MONITORING: "with a monitoring fault",
    ELSEWHERE: "failed at another site",
    STALE: "stale",
    PASSED: "passed",
    SKIPPED: "skipped",
    UNKNOWN: "without a run",
}


@dataclass(frozen=True)
class MatrixCell:
    """The series of a column at one site.

    Attributes:
        counts: the number of series by standing, which is an index of ``STANDINGS``.
        newest: when the newest run ended.
        series: the series, if the column is a single series.
        figures: ages and durations, if the column is a group of series.
    """

    counts: tuple[int, ...]
    newest: datetime | None
    series: SeriesCell | None = None
    figures: CellFigures | None = None

    @property
    def series_count(self) -> int:
        return sum(self.counts)

    @property
    def worst(self) -> int:
        return max(standing for standing, count in enumerate(self.counts) if count)

    @property
    def words(self) -> str:
        count = self.counts[self.worst]
        if self.series_count == 1:
            return _SINGLE_WORDS[self.worst]
        return {
            HERE: f"{count} failed here",
            SOMEWHERE: f"{count} failed, site unknown",
            MONITORING: counted(count, "monitoring fault"),
            ELSEWHERE: f"{count} failed elsewhere",
            STALE: "all stale" if count == self.series_count else f"{count} stale",
            PASSED: "all passed" if count == self.series_count else f"{count} passed",
            SKIPPED: "all skipped" if count == self.series_count else f"{count} skipped",
            UNKNOWN: "no run yet",
        }[self.worst]

    @property
    def all_words(self) -> str:
        """The number of series by standing, the worst first, such as ``1 failed here, 39 passed``."""
        shown = [(standing, count) for standing, count in enumerate(self.counts) if count]
        return ", ".join(f"{count:,} {_STANDING_WORDS[standing]}" for standing, count in reversed(shown))
