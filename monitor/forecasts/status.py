"""What is followed for forecasts, and what is left to do of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Avg, Count, Max, Q
from django.db.models.functions import Length

from monitor.models import ForecastPredictor, ForecastState, PendingChange, SuccessState


@dataclass(frozen=True)
class Status:
    """How many *metrics* are followed and how many have *answers*, how many are *behind* (of *series* too),
    how many probes are *predictors*, how many hours of *news* wait, and since when the oldest."""

    metrics: int
    answers: int
    series: int
    behind: int
    predictors: int
    news: int
    state_bytes: float
    newest: datetime | None

    def lines(self) -> Iterator[str]:
        yield f"{self.metrics} metrics are followed, of {self.answers} there is a forecast"
        yield f"{self.series} series are followed for how their runs end"
        yield f"{self.predictors} predictors are listened to"
        yield f"{self.state_bytes:.0f} bytes is what is kept of a metric, on average"
        yield f"{self.behind} of all are behind: they are reading the depot"
        yield f"{self.news} hours of series have news that wait"
        if self.newest is not None:
            yield f"the latest news that was used became known at {self.newest:%Y-%m-%d %H:%M:%S} UTC"


def status() -> Status:
    followed = ForecastState.objects.aggregate(
        metrics=Count("pk"),
        answers=Count("mean"),
        behind=Count("pk", filter=Q(is_behind=True)),
        state_bytes=Avg(Length("state")),
        newest=Max("used_until"),
    )
    series = SuccessState.objects.aggregate(many=Count("pk"), behind=Count("pk", filter=Q(is_behind=True)))
    return Status(
        metrics=followed["metrics"],
        answers=followed["answers"],
        series=series["many"],
        behind=followed["behind"] + series["behind"],
        predictors=ForecastPredictor.objects.count(),
        news=PendingChange.objects.count(),
        state_bytes=followed["state_bytes"] or 0.0,
        newest=followed["newest"],
    )


def behind_of(series: Collection[int]) -> int:
    """How many of these series (their keys), and of their metrics, are behind."""
    metrics = ForecastState.objects.filter(metric__segment__series__in=series, is_behind=True)
    return metrics.count() + SuccessState.objects.filter(series__in=series, is_behind=True).count()
