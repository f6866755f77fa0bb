"""What the pages of sites and resources share: forecasts of applications, and durations of stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.charts import stage_shades
from monitor.charts.stage_shades import DrawnStage
from monitor.charts.time_range import PageRange
from monitor.forecasts.choose_predictors import probes_of_kind
from monitor.forecasts.defaults import HEADLINE, LEVEL
from monitor.models import ForecastState, Series, SuccessState
from monitor.models.series import Measures
from monitor.overview.stage_durations_sql import StageDuration, stage_durations
from monitor.series.segments import current_metrics

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

MOST_APPLICATIONS = 20
LONGEST_DURATIONS = timedelta(days=366)  # a longer time range shows its last year


@dataclass(frozen=True)
class ApplicationForecast:
    """The forecast of the next run of an application series, in seconds.

    Attributes:
        median, lower, upper: None while there is no forecast; the latter bound the interval of *level*.
        probability: that the next run passes; None if it is unknown.
    """

    series: str
    probe: str
    median: float | None = None
    lower: float | None = None
    upper: float | None = None
    level: float = LEVEL
    probability: float | None = None


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


def application_forecasts(series: SeriesQuerySet) -> list[ApplicationForecast]:
    """Return the forecasts of the applications among *series*, the first ``MOST_APPLICATIONS`` by name."""
    is_application = Q(kind=Measures.APPLICATION)
    is_application |= Q(kind="", probe__in=probes_of_kind(Measures.APPLICATION))
    rows = list(series.filter(is_application, enabled=True).order_by("name")[:MOST_APPLICATIONS])
    shown = Series.objects.filter(pk__in=[row.pk for row in rows])
    metrics = dict(current_metrics(shown).filter(name=HEADLINE).values_list("pk", "segment__series"))
    states = ForecastState.objects.filter(metric__in=metrics, forecast__isnull=False)
    forecasts = {metrics[each.metric_id]: each.forecast for each in states.select_related("forecast")}
    chances = dict(SuccessState.objects.filter(series__in=shown).values_list("series", "probability"))
    return [
        ApplicationForecast(
            series=row.name,
            probe=row.probe,
            median=getattr(forecasts.get(row.pk), "median", None),
            lower=getattr(forecasts.get(row.pk), "lower", None),
            upper=getattr(forecasts.get(row.pk), "upper", None),
            probability=chances.get(row.pk),
        )
        for row in rows
    ]


def stages_in(series: Collection[int], chosen: PageRange) -> list[ProbeStages]:
    """Return the stages of *series* (primary keys) in the days of *chosen*, by name of the probe."""
    start = max(chosen.start or chosen.end - LONGEST_DURATIONS, chosen.end - LONGEST_DURATIONS)
    return stages_by_probe(stage_durations(series, start, chosen.end))


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


def bound_series(series: SeriesQuerySet, resources: Collection[str]) -> SeriesQuerySet:
    """Return those of *series* that use one of *resources* (names)."""
    return Series.objects.filter(pk__in=series.filter(bindings__resource__name__in=resources).values("pk"))
