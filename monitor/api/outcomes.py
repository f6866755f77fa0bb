"""Outcomes: what became of the jobs that forecasts had been asked for."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from django.contrib.auth.models import User
from django.utils import timezone
from ninja import Router, Schema, Status

from monitor.api.auth import require_outcome_permission
from monitor.api.lookup import in_utc
from monitor.api.problems import Refused
from monitor.forecasts.job_outcomes import AlreadyTold, OutcomeError, Told, UnknownForecast, accuracy, tell

if TYPE_CHECKING:
    from django.http import HttpRequest

ME = "me"
router = Router()
_STATUS: dict[type[OutcomeError], tuple[int, str]] = {
    UnknownForecast: (404, "unknown_forecast"),
    AlreadyTold: (409, "already_told"),
}


class OutcomeIn(Schema, extra="forbid"):
    """*job* is the name by which the one who tells knows it. *seconds*: how long that took which the forecast
    was of; by default all from *started_at* to *ended_at*."""

    job: str
    outcome: Literal["passed", "failed"]
    started_at: datetime
    ended_at: datetime
    seconds: float | None = None


class OutcomeOut(Schema):
    forecast: int
    job: str
    outcome: str
    seconds: float
    received_at: datetime
    duplicate: bool


class AccuracyOut(Schema):
    """Of the newest *n* jobs that *consumer* has told of, 1,000 at most; of those that *passed* the errors of
    the median, *mean_absolute_scaled_error* against the last value known, and how many of them lay in the
    interval of *level*."""

    consumer: str
    n: int
    passed: int
    level: float
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    newest_at: datetime | None


@router.post(
    "/{int:forecast}/outcome",
    response={200: OutcomeOut, 201: OutcomeOut},
    summary="Tell what became of a job that a forecast had been asked for",
)
def told(request: HttpRequest, forecast: int, said: OutcomeIn) -> Status[OutcomeOut]:
    """How good forecasts were for those who asked for them is told from it, and a job that passed is history
    from now on: the next forecasts learn from it. The same may be told again; a job is kept once."""
    require_outcome_permission(request)
    given = Told(
        said.job,
        said.outcome == "passed",
        _time("started_at", said.started_at),
        _time("ended_at", said.ended_at),
        said.seconds,
    )
    try:
        kept, is_new = tell(request.user, forecast, given, timezone.now())
    except OutcomeError as error:
        status, code = _STATUS.get(type(error), (422, "invalid"))
        raise Refused(status, code, str(error)) from error
    shown = OutcomeOut(
        forecast=kept.forecast_id,
        job=kept.job,
        outcome="passed" if kept.passed else "failed",
        seconds=kept.seconds or 0.0,
        received_at=kept.received_at,
        duplicate=not is_new,
    )
    return Status(201 if is_new else 200, shown)


@router.get("/accuracy", response=AccuracyOut, summary="How good forecasts were for one who asked for them")
def of_consumer(request: HttpRequest, consumer: str = ME) -> AccuracyOut:
    """*consumer* is ``me``, or the name of another user for who may see the outcomes of others."""
    who = request.user if consumer == ME else _other(request, consumer)
    return AccuracyOut(consumer=who.get_username(), **vars(accuracy(who, request.user)))


def _other(request: HttpRequest, name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None or not (found == request.user or request.user.has_perm("monitor.view_outcome")):
        raise Refused(404, "unknown_consumer", f"there is no consumer {name!r} whose outcomes you may see")
    return found


def _time(name: str, given: datetime) -> datetime:
    if given.tzinfo is None:
        raise Refused(422, "invalid", f"{name}: expected a time with its offset, got {given.isoformat()}")
    return in_utc(name, given) or given
