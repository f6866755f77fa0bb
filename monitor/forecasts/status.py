"""Count what is followed for forecasts, and what is still to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Avg, Count, Max, Q
from django.db.models.functions import Length

from monitor.models import ForecastPredictor, ForecastState, PendingChange, SuccessState


@dataclass(frozen=True)
class ForecastStatus:
    """How many *metrics* and *series* are followed, have *answers*, and are *behind* (both together).

    *pending_changes* are hours of series, *state_bytes* the mean size of a state, *newest* is when the latest
    input that was used became known.
    """

    metrics: int
    answers: int
    series: int
    behind: int
    predictors: int
    pending_changes: int
    state_bytes: float
    newest: datetime | None

    def lines(self) -> Iterator[str]:
        yield f"{self.metrics} metrics are followed, {self.answers} of them have a forecast"
        yield f"{self.series} series are followed for how likely they succeed"
        yield f"{self.predictors} predictors are in use"
        yield f"{self.state_bytes:.0f} bytes is the mean size of the state of a metric"
        yield f"{self.behind} states are behind: their inputs are being read from the depot"
        yield f"{self.pending_changes} changed hours of series are pending"
        if self.newest is not None:
            yield f"the latest input that was used became known at {self.newest:%Y-%m-%d %H:%M:%S} UTC"


def status() -> ForecastStatus:
    metrics = ForecastState.objects.aggregate(
        followed=Count("pk"),
        answers=Count("mean"),
        behind=Count("pk", filter=Q(is_behind=True)),
        state_bytes=Avg(Length("state")),
        newest=Max("used_until"),
    )
    series = SuccessState.objects.aggregate(
        followed=Count("pk"), behind=Count("pk", filter=Q(is_behind=True))
    )
    return ForecastStatus(
        metrics=metrics["followed"],
        answers=metrics["answers"],
        series=series["followed"],
        behind=metrics["behind"] + series["behind"],
        predictors=ForecastPredictor.objects.count(),
        pending_changes=PendingChange.objects.count(),
        state_bytes=metrics["state_bytes"] or 0.0,
        newest=metrics["newest"],
    )


def behind_of(series: Collection[int]) -> int:
    """Return how many states of these series (their keys) and of their metrics are behind."""
    metrics = ForecastState.objects.filter(metric__segment__series__in=series, is_behind=True)
    return metrics.count() + SuccessState.objects.filter(series__in=series, is_behind=True).count()
