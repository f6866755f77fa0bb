"""The mean durations of stages by probe: the rows of a table, and a bar of their shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.web.charts import stage_shades

if TYPE_CHECKING:
    from monitor.analysis.performance.stage_durations_sql import StageDuration
    from monitor.web.charts.stage_shades import DrawnStage


@dataclass(frozen=True)
class StageRow:
    """A stage with its durations, and its *share* of the sum of the means of all stages."""

    drawn: DrawnStage
    duration: StageDuration
    share: float


@dataclass(frozen=True)
class ProbeStages:
    """The stages of the passed runs of *probe*, in order."""

    probe: str
    rows: Sequence[StageRow]

    @property
    def bars(self) -> list[tuple[DrawnStage, float, float]]:
        """Each stage with its left edge and its width in a bar of the width 100."""
        left, bars = 0.0, []
        for row in self.rows:
            bars.append((row.drawn, left, 100 * row.share))
            left += 100 * row.share
        return bars

    @property
    def words(self) -> str:
        return ", ".join(f"{row.drawn.name} {row.share:.0%}" for row in self.rows)


def stages_by_probe(durations: Iterable[StageDuration]) -> list[ProbeStages]:
    """Return *durations* by probe, the stages in the order in which the probe has them."""
    by_probe: dict[str, dict[str, StageDuration]] = defaultdict(dict)
    for duration in durations:
        by_probe[duration.probe][duration.stage] = duration
    return [ProbeStages(probe, _rows(probe, stages)) for probe, stages in sorted(by_probe.items())]


def _rows(probe: str, stages: dict[str, StageDuration]) -> list[StageRow]:
    whole = sum(stage.mean for stage in stages.values()) or 1.0
    return [
        StageRow(drawn, stages[drawn.name], stages[drawn.name].mean / whole)
        for drawn in stage_shades.of_probe(probe, stages)
        if drawn.name in stages
    ]
