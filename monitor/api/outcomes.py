"""Job outcomes: reported by consumers of forecasts, and the accuracy computed from them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from django.contrib.auth.models import User
from django.utils import timezone
from ninja import Router, Schema, Status

from monitor.api.http.auth import SCHEDULER_AUTH, require_outcome_permission
from monitor.api.http.find_metrics import in_utc
from monitor.api.http.problems import Refused
from monitor.forecasts.job_outcomes import (
    ConflictingOutcome,
    JobOutcome,
    OutcomeError,
    UnknownForecast,
    accuracy,
    record_job_outcome,
)

if TYPE_CHECKING:
    from django.http import HttpRequest

ME = "me"
router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)
_STATUS: dict[type[OutcomeError], tuple[int, str]] = {
    UnknownForecast: (404, "unknown_forecast"),
    ConflictingOutcome: (409, "already_told"),
}


class OutcomeIn(Schema, extra="forbid"):
    """*job* is the caller's name of the job. *seconds* is the actual duration of what was forecast; the
    default is the time from *started_at* to *ended_at*."""

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
    """Scores over the newest *n* jobs (at most 1,000) that *consumer* has reported. Errors are errors of the
    median forecasts of *passed* jobs. *mean_absolute_scaled_error* is relative to the baseline (last value).
    *coverage* is the share of actual values inside the interval of probability *level*."""

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
    "/forecasts/{int:forecast}/outcome",
    response={200: OutcomeOut, 201: OutcomeOut},
    operation_id="monitor_api_outcomes_told",
    summary="Report the outcome of a job that a forecast was requested for",
)
def report_outcome(request: HttpRequest, forecast: int, outcome: OutcomeIn) -> Status[OutcomeOut]:
    """The outcome is scored against the forecast. The duration of a passed job becomes part of the history
    from which later forecasts learn. Reporting the same outcome again has no effect."""
    require_outcome_permission(request)
    job_outcome = JobOutcome(
        outcome.job,
        outcome.outcome == "passed",
        _time("started_at", outcome.started_at),
        _time("ended_at", outcome.ended_at),
        outcome.seconds,
    )
    try:
        stored, is_new = record_job_outcome(request.user, forecast, job_outcome, timezone.now())
    except OutcomeError as error:
        status, code = _STATUS.get(type(error), (422, "invalid"))
        raise Refused(status, code, str(error)) from error
    shown = OutcomeOut(
        forecast=stored.forecast_id,
        job=stored.job,
        outcome="passed" if stored.passed else "failed",
        seconds=stored.seconds or 0.0,
        received_at=stored.received_at,
        duplicate=not is_new,
    )
    return Status(201 if is_new else 200, shown)


@router.get(
    "/forecasts/accuracy",
    response=AccuracyOut,
    operation_id="monitor_api_outcomes_of_consumer",
    summary="Forecast accuracy for a consumer",
)
def consumer_accuracy(request: HttpRequest, consumer: str = ME) -> AccuracyOut:
    """*consumer* is ``me``, or another user name if you may see the outcomes of other users."""
    who = request.user if consumer == ME else _other(request, consumer)
    return AccuracyOut(consumer=who.get_username(), **vars(accuracy(who, request.user)))


def _other(request: HttpRequest, name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None or not (user == request.user or request.user.has_perm("monitor.view_outcome")):
        raise Refused(404, "unknown_consumer", f"there is no consumer {name!r} whose outcomes you may see")
    return user


def _time(name: str, time: datetime) -> datetime:
    if time.tzinfo is None:
        raise Refused(422, "invalid", f"{name}: expected a time with its offset, got {time.isoformat()}")
    return in_utc(name, time) or time
