"""Count the states of forecasts, and the inputs and changes that are still to be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.db.models import Avg, Count, Max, Q
from django.db.models.functions import Length

from monitor.models import ForecastPredictor, ForecastState, PendingChange, SuccessState

_COUNTS = {"followed": Count("pk"), "behind": Count("pk", filter=Q(is_behind=True))}


def status_lines() -> Iterator[str]:
    """Yield the lines that ``manage.py forecasts status`` prints."""
    metrics = ForecastState.objects.aggregate(
        **_COUNTS,
        forecasts=Count("forecast"),
        mean_bytes=Avg(Length("state")),
        newest=Max("used_until"),
    )
    series = SuccessState.objects.aggregate(**_COUNTS)
    yield f"{metrics['followed']} metrics are followed, {metrics['forecasts']} of them have a forecast"
    yield f"{series['followed']} series are followed for how likely they succeed"
    yield f"{ForecastPredictor.objects.count()} predictors are in use"
    yield f"{metrics['mean_bytes'] or 0.0:.0f} bytes is the mean size of the state of a metric"
    behind = metrics["behind"] + series["behind"]
    yield f"{behind} states are behind: their inputs are being read from the depot"
    yield f"{PendingChange.objects.count()} changed hours of series are pending"
    if metrics["newest"] is not None:
        yield f"the latest input that was used became known at {metrics['newest']:%Y-%m-%d %H:%M:%S} UTC"


def behind_of(series: Collection[int]) -> int:
    """Return how many states of these series (their keys) and of their metrics have unread inputs."""
    metrics = ForecastState.objects.filter(metric__segment__series__in=series, is_behind=True)
    return metrics.count() + SuccessState.objects.filter(series__in=series, is_behind=True).count()
