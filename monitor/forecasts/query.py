"""Answer what a run will take: from what is ready, or made for who asks; or say why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

from forecasting.base import Abstained
from forecasting.uncertainty.intervals import lower_tail
from monitor.forecasts import issue as service
from monitor.forecasts.defaults import HEADLINE, METHOD
from monitor.forecasts.delivered import give
from monitor.forecasts.lookup import quantile, ready
from monitor.forecasts.refresh import refresh_series
from monitor.forecasts.score import record_of
from monitor.forecasts.success_sql import TotalForecast
from monitor.forecasts.success_state import SuccessEstimate, estimates
from monitor.forecasts.unavailable import down
from monitor.models import Forecast, Metric, Series
from monitor.series.segments import segment_status

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.forecasts.lookup_sql import Ready


SLACK = timedelta(seconds=60)  # by which clocks of those who ask may be behind ours
Code = Literal["too_few", "stale", "past", "segment_changed", "site_down"]


class UnknownSeries(Exception):
    """There is none of that name that the one who asks may see."""


class UnknownMetric(Exception):
    """The series has no such metric; *known* are those that it has."""

    def __init__(self, metric: str, known: Sequence[str]) -> None:
        super().__init__(metric)
        self.known = known


class NoAnswer(Exception):
    """No forecast that would deserve trust. *code* says why for programs: as ``forecasting.base.Abstained``,
    or ``segment_changed`` where too few runs have passed since what is run has *changed*, or ``site_down``
    with why nothing runs at the resources that are *down*."""

    def __init__(
        self, code: Code, said: str, *, changed: Sequence[str] = (), down: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(said)
        self.code, self.changed, self.down = code, changed, down or {}


@dataclass(frozen=True)
class Asked:
    """What is to be forecast: *metric* of the next run of *series*, or of one *at* some time. No answer is
    wanted from data that are older than *max_age*, nor, where that is None, from what is stale by itself."""

    series: str
    metric: str
    method: str = METHOD
    at: datetime | None = None
    max_age: timedelta | None = None


@dataclass(frozen=True)
class Said:
    """An answer. *quantiles* are of the grid; *explanation*, of a total, is JSON: what its stages are
    expected to take. *record* is of forecasts by the same method."""

    unit: str
    forecast: int
    method: str
    predictor: str
    n: int
    mean: float
    median: float
    quantiles: Sequence[float]
    issued_at: datetime
    last_time: datetime
    known_until: datetime
    explanation: str | None
    record: Record
    success: SuccessEstimate | None


@dataclass(frozen=True)
class Record:
    """How the newest *n* forecasts of the metric by the method fared; *less* and *most* are as those of a
    ``ForecastState``."""

    record_n: int = 0
    mean_absolute_error: float | None = None
    relative_error: float | None = None
    mean_absolute_scaled_error: float | None = None
    winkler_score: float | None = None
    less: Sequence[int] = ()
    most: Sequence[int] = ()

    def coverage(self, level: float) -> float | None:
        """The share of truths in the interval of *level*, ends included; between levels of the grid about."""
        if not self.record_n or not self.less:
            return None
        tail = lower_tail(level)
        return (quantile(self.most, 1.0 - tail) - quantile(self.less, tail)) / self.record_n


def foretell(user: AbstractBaseUser | AnonymousUser, asked: Asked, now: datetime) -> Said:
    """The answer for *user*, who may tell later what became of it.

    Raises:
        UnknownSeries, UnknownMetric: there is no such thing, for him.
        NoAnswer: not now, and why.
        forecasting.base.UnknownMethod: there is no such method.
    """
    if asked.at is not None and asked.at < now - SLACK:
        raise NoAnswer("past", f"{asked.at:%Y-%m-%d %H:%M:%S} UTC is past: that would not be a forecast")
    at = max(asked.at or now, now)
    found = _found(user, asked, at)
    if found.is_troubled:
        _refuse_if_down(user, found, at, now)
    said, found = _said(user, found, asked, at, now)
    _refuse_if_old(said, found, asked, now)
    give([(said.forecast, found.given_at if said.forecast == found.forecast else None)], now)
    return said


def _said(
    user: AbstractBaseUser | AnonymousUser, found: Ready, asked: Asked, at: datetime, now: datetime
) -> tuple[Said, Ready]:
    """What is ready, or is made now; with what was *found* last."""
    if at > now or asked.method != METHOD:
        made = _issued(found, asked, at if at > now else None, now)
        said = _made(made, found, asked)
        return (replace(said, success=_success_at(found, asked, made, at)) if at > now else said), found
    if found.mean is not None:
        return _told(found), found
    refresh_series([found.place.series], now)
    made = _issued(found, asked, None, now)
    found = _found(user, asked, at)
    # Nothing is ready while the depot is still being read for it.
    return (_made(made, found, asked) if found.mean is None else _told(found)), found


def _found(user: AbstractBaseUser | AnonymousUser, asked: Asked, at: datetime) -> Ready:
    found = ready(user, asked.series, asked.metric, at)
    if found is None:
        raise UnknownSeries(asked.series)
    if found.metric is None:
        raise _no_metric(found.place.series, asked.metric)
    return found


def _no_metric(series: int, metric: str) -> Exception:
    """Why the next run of *series* will give no value of *metric* that anything is known of."""
    known = Metric.objects.filter(segment__series=series).order_by("name").distinct()
    names = list(known.values_list("name", flat=True))
    return UnknownMetric(metric, names) if names and metric not in names else _too_few(series, "")


def _refuse_if_down(
    user: AbstractBaseUser | AnonymousUser, found: Ready, at: datetime, now: datetime
) -> None:
    there = [name for name in found.place.resources.split(",") if name]
    if closed := down(user, there, at, now):
        raise NoAnswer("site_down", "; ".join(sorted(set(closed.values()))), down=closed)


def _issued(found: Ready, asked: Asked, at: datetime | None, now: datetime) -> Forecast:
    metric = Metric.objects.get(pk=cast("int", found.metric))
    try:
        return service.issue(metric, now, method=asked.method, at=at)
    except Abstained as error:
        if error.reason == "too_few":
            raise _too_few(found.place.series, str(error), metric) from error
        raise NoAnswer(error.reason, str(error)) from error


def _too_few(series: int, why: str, metric: Metric | None = None) -> NoAnswer:
    """That too few runs have passed; since what is run has changed, if it has."""
    stands = segment_status(Series.objects.get(pk=series))
    passed = metric.samples.filter(passed=True).count() if metric and stands.changes else 0
    said = ": ".join(filter(None, (why, stands.passed_text(passed) if stands.changes or not why else "")))
    code: Code = "segment_changed" if stands.changes else "too_few"
    return NoAnswer(code, said, changed=[str(change) for change in stands.changes])


def _told(found: Ready) -> Said:
    """What is ready, of which there is an answer."""
    return Said(
        unit=found.unit or "",
        forecast=found.forecast or 0,
        method=found.method or METHOD,
        predictor=found.predictor or "",
        n=found.n or 0,
        mean=cast("float", found.mean),
        median=cast("float", found.median),
        quantiles=found.quantiles or (),
        issued_at=cast("datetime", found.issued_at),
        last_time=cast("datetime", found.last_time),
        known_until=cast("datetime", found.known_until),
        explanation=found.explanation,
        record=_record(found),
        success=_success(found),
    )


def _made(made: Forecast, found: Ready, asked: Asked) -> Said:
    """What was made for who asks."""
    is_ours = asked.method == METHOD
    return Said(
        unit=found.unit or "",
        forecast=made.pk,
        method=made.method,
        predictor=made.predictor,
        n=made.n,
        mean=made.mean,
        median=made.median,
        quantiles=made.quantiles or (),
        issued_at=made.issued_at,
        last_time=made.last_time,
        known_until=made.last_known_at,
        explanation=found.explanation if is_ours else None,
        record=_record(found) if is_ours else _record_of(made),
        success=_success(found),
    )


def _refuse_if_old(said: Said, found: Ready, asked: Asked, now: datetime) -> None:
    age = max(now - said.known_until, timedelta())
    if asked.max_age is not None and age > asked.max_age:
        limit = f"{asked.max_age.total_seconds():.0f} s are accepted"
        raise NoAnswer("stale", f"the newest value became known {age.total_seconds():.0f} s ago; {limit}")
    if asked.max_age is None and found.stale_at is not None and now > found.stale_at:
        raise NoAnswer("stale", f"the newest value is of {said.last_time:%Y-%m-%d %H:%M} UTC")


def _record(found: Ready) -> Record:
    return Record(
        found.record_n or 0,
        found.mean_absolute_error,
        found.relative_error,
        found.mean_absolute_scaled_error,
        found.winkler_score,
        found.less or (),
        found.most or (),
    )


def _record_of(made: Forecast) -> Record:
    return Record(**record_of(made.metric_id, made.method))


def _success(found: Ready) -> SuccessEstimate | None:
    if found.success_n is None or found.success_probability is None:
        return None
    return SuccessEstimate(
        found.success_n, found.success_probability, found.success_seconds, found.success_quantiles
    )


def _success_at(found: Ready, asked: Asked, made: Forecast, at: datetime) -> SuccessEstimate | None:
    """Of a run that starts *at* some time; where its total was asked for, as long as was *made* of that."""
    series = found.place.series
    is_its = asked.metric == HEADLINE and asked.method == METHOD
    totals = {series: TotalForecast(series, made.mean, made.quantiles or ())} if is_its else None
    said = estimates([series], at, totals)
    return said.get(series, _success(found))
