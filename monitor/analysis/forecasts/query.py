"""Answer questions about the next run of a series, or about a run at a given time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

from forecasting.base import Abstained
from monitor.analysis.forecasts.defaults import HEADLINE, METHOD
from monitor.analysis.forecasts.deliveries import record_deliveries
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.lookup import ForecastAnswer, look_up
from monitor.analysis.forecasts.refresh import refresh_companions
from monitor.analysis.forecasts.score import record_of
from monitor.analysis.forecasts.success_state import TotalEstimate, estimates
from monitor.analysis.forecasts.unavailable import find_unavailable
from monitor.depot.series.segments import segment_status
from monitor.models import Metric, Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


COMPANION_SECONDS = 0.1  # for success and stages, even if the forecast has taken all the time
CLOCK_TOLERANCE = timedelta(seconds=60)  # by which the clocks of clients may be slow
Code = Literal["too_few", "stale", "past", "segment_changed", "site_down"]


class UnknownSeries(Exception):
    """No series of that name is visible to the user."""


class UnknownMetric(Exception):
    """The series has no such metric; *known* lists the names of its metrics."""

    def __init__(self, metric: str, known: Sequence[str]) -> None:
        super().__init__(metric)
        self.known = known


class NoAnswer(Exception):
    """No forecast can be trusted.

    Attributes:
        code: ``past``, ``stale``, ``segment_changed`` (too few runs have passed since the configuration
            changed), ``site_down``, or the reason of ``forecasting.base.Abstained``.
        changed: the changes of the configuration, if *code* is ``segment_changed``.
        down: the reason for each unavailable resource, if *code* is ``site_down``.
    """

    def __init__(
        self, code: Code, reason: str, *, changed: Sequence[str] = (), down: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(reason)
        self.code, self.changed, self.down = code, changed, down or {}


@dataclass(frozen=True)
class ForecastQuestion:
    """A request to forecast *metric* of the next run of *series*, or of a run that starts at *at*.

    A forecast from data older than *max_age* is refused; if *max_age* is None, a stale forecast is refused.
    """

    series: str
    metric: str
    method: str = METHOD
    at: datetime | None = None
    max_age: timedelta | None = None


def answer_question(
    user: AbstractBaseUser | AnonymousUser,
    question: ForecastQuestion,
    now: datetime,
    *,
    within_seconds: float,
) -> ForecastAnswer:
    """Return the answer, and record its delivery: *user* may report an outcome of the forecast later.

    A forecast that is not stored is computed if that takes at most about *within_seconds*.

    Raises:
        UnknownSeries, UnknownMetric: the user can see no such series or metric.
        NoAnswer: no forecast can be trusted now.
        monitor.analysis.forecasts.not_ready.NotReady: the forecast is being computed.
        forecasting.base.UnknownMethod: there is no such method.
    """
    if question.at is not None and question.at < now - CLOCK_TOLERANCE:
        raise NoAnswer("past", f"{question.at:%Y-%m-%d %H:%M:%S} UTC is past: that would not be a forecast")
    at = max(question.at or now, now)
    until = time.monotonic() + within_seconds
    answer = _stored(user, question, at)
    if answer.is_troubled and (down := find_unavailable(user, answer.resource_names, at, now)):
        raise NoAnswer("site_down", "; ".join(sorted(set(down.values()))), down=down)
    if at > now or question.method != METHOD or answer.mean is None:
        answer = _stored(user, question, at, forecast=_issued(answer, question, at, now, until))
    if question.method != METHOD:
        record = record_of(cast("int", answer.metric), question.method)
        answer = replace(answer, explanation=None, **vars(record))
    if at > now:
        answer = _with_success_at(answer, question, at)
    _refuse_if_old(answer, question, now)
    record_deliveries([(answer.forecast, answer.delivered_at)], now)
    return answer


def _stored(
    user: AbstractBaseUser | AnonymousUser,
    question: ForecastQuestion,
    at: datetime,
    *,
    forecast: int | None = None,
) -> ForecastAnswer:
    answer = look_up(user, question.series, question.metric, at, forecast=forecast)
    if answer is None:
        raise UnknownSeries(question.series)
    if answer.metric is not None:
        return answer
    known = Metric.objects.filter(segment__series=answer.series).order_by("name").distinct()
    names = list(known.values_list("name", flat=True))
    if names and question.metric not in names:
        raise UnknownMetric(question.metric, names)
    raise _too_few(answer.series, "")


def _issued(
    answer: ForecastAnswer, question: ForecastQuestion, at: datetime, now: datetime, until: float
) -> int:
    """Issue the forecast that *question* asks for and the depot does not have; return its key.

    Such a forecast is for the time *at*, by another method than the default, or the first of its metric.
    No work for it begins after the monotonic time *until*. Other metrics are not computed, but for the stages
    of a first forecast of the total.
    """
    metric = Metric.objects.select_related("segment").get(pk=cast("int", answer.metric))
    try:
        forecast = issue(metric, now, method=question.method, at=at if at > now else None, until=until)
    except Abstained as error:
        if error.reason == "too_few":
            raise _too_few(answer.series, str(error), metric) from error
        raise NoAnswer(error.reason, str(error)) from error
    if answer.mean is None:
        refresh_companions(metric, now, max(until, time.monotonic() + COMPANION_SECONDS))
    return forecast.pk


def _with_success_at(answer: ForecastAnswer, question: ForecastQuestion, at: datetime) -> ForecastAnswer:
    """Return *answer* with the success estimate of a run that starts at *at*."""
    totals = None
    if question.method == METHOD and question.metric == HEADLINE:
        total = TotalEstimate(answer.series, cast("float", answer.mean), answer.quantiles or ())
        totals = {answer.series: total}
    success = estimates([answer.series], at, totals).get(answer.series)
    return replace(answer, **vars(success)) if success else answer


def _too_few(series: int, reason: str, metric: Metric | None = None) -> NoAnswer:
    """Return the error for too few passed runs: in total, or since the configuration of *series* changed.

    *reason* begins the message. *metric*, whose passed runs are counted, is None if the segment has none.
    """
    status = segment_status(Series.objects.get(pk=series))
    passed = metric.samples.filter(passed=True).count() if metric and status.changes else 0
    text = ": ".join(
        filter(None, (reason, status.passed_text(passed) if status.changes or not reason else ""))
    )
    code: Code = "segment_changed" if status.changes else "too_few"
    return NoAnswer(code, text, changed=[str(change) for change in status.changes])


def _refuse_if_old(answer: ForecastAnswer, question: ForecastQuestion, now: datetime) -> None:
    age = max(now - (answer.known_until or now), timedelta())
    if question.max_age is not None and age > question.max_age:
        limit = f"{question.max_age.total_seconds():.0f} s are accepted"
        raise NoAnswer("stale", f"the newest value became known {age.total_seconds():.0f} s ago; {limit}")
    if question.max_age is None and answer.stale_at is not None and now > answer.stale_at:
        raise NoAnswer("stale", f"the newest value is of {answer.last_time:%Y-%m-%d %H:%M} UTC")
