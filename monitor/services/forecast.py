"""Issue forecasts, keep them, and score them when the truth arrives."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from forecasting import metrics as scores
from forecasting.base import Abstained
from forecasting.intervals import lower_tail
from forecasting.series import LEAST_VALUES, Observation, forecast_history
from monitor.models import Forecast, Metric
from monitor.services.history import first_known_later, history, last_known_at, nth_newest_time
from reporters import report as wire

METHOD = "nws"
LEVEL = 0.8
NEWEST = 1000  # values that a forecast is made from, at most
AT_ONCE = 40  # a fifth of a second or so
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
# Every total that a report has, and what reporters are told beside them (``begin``).
FORECAST_BY_ITSELF = (*wire.totals(()), "stage.compute.seconds")


def issue(metric: Metric, now: datetime, *, method: str = METHOD, level: float = LEVEL) -> Forecast:
    """Forecast the next value of *metric*, which is of one segment, from what is known at *now*.

    From the same knowledge comes the same answer: it is issued, and kept, once.

    Raises:
        forecasting.base.Abstained: too few values.
        forecasting.base.UnknownMethod: no such method.
    """
    newest_news = last_known_at(metric, known_by=now, newest=NEWEST)
    knowledge = {"metric": metric, "method": method, "level": level, "last_known_at": newest_news}
    issued = Forecast.objects.filter(**knowledge).first()
    return issued or _make(knowledge, now)


def _make(knowledge: dict[str, Any], now: datetime) -> Forecast:
    metric, level = knowledge["metric"], knowledge["level"]
    points = history(metric, known_by=now, newest=NEWEST)
    known = [Observation(p.time.timestamp(), p.known_at.timestamp(), p.value) for p in points]
    floor = 0.0 if metric.unit == "seconds" else None
    tail = lower_tail(level)
    answer = forecast_history(
        known, now.timestamp(), method=knowledge["method"], probabilities=(tail, 1.0 - tail), floor=floor
    )
    lower, upper = (answer.quantiles[key] for key in sorted(answer.quantiles))
    forecast, _ = Forecast.objects.get_or_create(
        **knowledge,
        defaults={
            "issued_at": now,
            "last_time": points[-1].time,
            "n": answer.n,
            "mean": answer.mean,
            "lower": lower,
            "upper": upper,
        },
    )
    return forecast


def refresh(now: datetime) -> None:
    """Score what can be scored, and forecast anew the totals of segments with news since their last one.

    Those with the oldest news first, not more than ``AT_ONCE``: it is done at every tick, and who asks in
    between gets a forecast made for him. News of a segment that is not the current one are of late reports;
    its series may go back to it.
    """
    score()
    for metric in _with_news(Metric.objects.filter(name__in=FORECAST_BY_ITSELF), now)[:AT_ONCE]:
        with suppress(Abstained):
            issue(metric, now)


def _with_news(metrics: QuerySet[Metric], now: datetime) -> QuerySet[Metric]:
    """Those of *metrics* with values of passed runs that no forecast of ours was made from, and enough.

    Those that have waited longest first. What becomes known later than *now* (of a clock that is fast) is no
    news yet: no forecast would be made from it, and it would keep others waiting.
    """
    ours = Forecast.objects.filter(metric=OuterRef("pk"), method=METHOD, level=LEVEL)
    made_until = Subquery(ours.order_by("-last_known_at").values("last_known_at")[:1])
    marked = metrics.annotate(made_until=Coalesce(made_until, LONG_AGO), long_ago=Value(LONG_AGO))
    news = first_known_later("time", "pk", than="made_until", after="long_ago", by=now)
    least = nth_newest_time(LEAST_VALUES)  # with fewer each tick would try in vain again
    waiting = marked.annotate(news=news, least=least).filter(news__isnull=False, least__isnull=False)
    return waiting.order_by("news", "pk")


def score() -> int:
    """Give every forecast whose truth has arrived its truth; how many.

    The truth of a forecast is the first value of a later slot that became known after it was issued.
    """
    value, time = (
        first_known_later(field, "metric", than="issued_at", after="last_time") for field in ("value", "time")
    )
    due = Forecast.objects.unscored().annotate(first_value=value).filter(first_value__isnull=False)
    return due.update(truth=value, truth_time=time)


def track_record(metric: Metric, *, method: str, level: float, last: int = 100) -> scores.TrackRecord:
    """The record of the last *last* scored forecasts of *metric* by *method*, oldest first."""
    scored = Forecast.objects.scored().filter(metric=metric, method=method, level=level)
    rows = list(scored.order_by("-last_known_at").values_list("truth", "mean", "lower", "upper")[:last])[::-1]
    truth, mean, lower, upper = np.array(rows, dtype=float).reshape(-1, 4).T
    return scores.track_record(truth, mean, lower, upper, level=level)
