"""Issue forecasts, keep them, and score them when the truth arrives."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from forecasting import metrics as scores
from forecasting.base import Abstained
from forecasting.series import Observation, forecast_history
from monitor.models import Forecast, Metric, Sample
from monitor.services.history import history

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecasting.base import Forecast as Answer

METHOD = "nws"
LEVEL = 0.8
NEWEST = 1000  # values that a forecast is made from, at most
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
FORECAST_BY_ITSELF = ("total.seconds", "total_essential.seconds", "total_core.seconds")


@dataclass(frozen=True)
class TrackRecord:
    """How the forecasts of a metric fared, over the last *n* that were scored."""

    n: int
    mean_absolute_error: float | None = None
    mean_relative_error: float | None = None
    coverage: float | None = None


def issue(metric: Metric, now: datetime, *, method: str = METHOD, level: float = LEVEL) -> Forecast:
    """Forecast the next value of *metric* from what is known at *now*; from the same knowledge, the same answer.

    Raises:
        forecasting.base.Abstained: too few values.
        forecasting.base.UnknownMethod: no such method.
    """
    points = history(metric, known_by=now, newest=NEWEST)
    known = [Observation(p.time.timestamp(), p.known_at.timestamp(), p.value) for p in points]
    floor = 0.0 if metric.unit == "seconds" else None
    answer = forecast_history(known, now.timestamp(), method=method, level=level, floor=floor)
    newest = points[-1]
    lower, upper = interval(answer, level)
    forecast, _ = Forecast.objects.get_or_create(
        metric=metric,
        method=method,
        level=level,
        last_time=newest.time,
        defaults={
            "issued_at": now,
            "last_known_at": newest.known_at,
            "n": answer.n,
            "mean": answer.mean,
            "lower": lower,
            "upper": upper,
        },
    )
    return forecast


def refresh(now: datetime) -> None:
    """Score what can be scored, and forecast anew the totals of every series with news since its last one."""
    for metric in _with_news(Metric.objects.filter(forecasts__truth__isnull=True)):
        score(metric)
    for metric in _with_news(Metric.objects.filter(name__in=FORECAST_BY_ITSELF)):
        with suppress(Abstained):
            issue(metric, now)


def _with_news(metrics: QuerySet[Metric]) -> QuerySet[Metric]:
    """Those of *metrics* that have values of passed runs newer than what their last forecast was made from."""
    newest = Forecast.objects.filter(metric=OuterRef("pk")).order_by("-last_time").values("last_time")[:1]
    news = Sample.objects.filter(metric=OuterRef("pk"), passed=True).filter(
        time__gt=Coalesce(OuterRef("forecast_until"), LONG_AGO)
    )
    return metrics.distinct().annotate(forecast_until=Subquery(newest)).filter(Exists(news))


def interval(answer: Answer, level: float) -> tuple[float, float]:
    """The bounds between which the truth lies with probability *level*."""
    ordered = [answer.quantiles[key] for key in sorted(answer.quantiles)]
    return ordered[0], ordered[-1]


def score(metric: Metric) -> int:
    """Give every forecast of *metric* whose truth has arrived its truth; how many.

    The truth of a forecast is the first value of a passed run that became known after it was issued.
    """
    scored = 0
    for forecast in metric.forecasts.unscored():
        truth = _truth(forecast)
        if truth is not None:
            forecast.truth, forecast.truth_time = truth.value, truth.time
            forecast.save(update_fields=["truth", "truth_time"])
            scored += 1
    return scored


def _truth(forecast: Forecast) -> Sample | None:
    later = Sample.objects.filter(metric_id=forecast.metric_id, passed=True, known_at__gt=forecast.issued_at)
    return later.filter(time__gt=forecast.last_time).order_by("time").first()


def track_record(metric: Metric, *, method: str, level: float, last: int = 100) -> TrackRecord:
    """The record of the last *last* scored forecasts of *metric* by *method*."""
    scored = Forecast.objects.scored().filter(metric=metric, method=method, level=level)
    forecasts: Sequence[Forecast] = scored.order_by("-last_time")[:last]
    if not forecasts:
        return TrackRecord(n=0)
    truth = np.array([forecast.truth for forecast in forecasts])
    mean = np.array([forecast.mean for forecast in forecasts])
    return TrackRecord(
        n=len(forecasts),
        mean_absolute_error=scores.mean_absolute_error(truth, mean),
        mean_relative_error=scores.mean_relative_error(truth, mean),
        coverage=float(np.mean([forecast.covered for forecast in forecasts])),
    )
