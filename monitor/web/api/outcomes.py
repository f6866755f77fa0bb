"""Job outcomes: reported by consumers of forecasts, and the accuracy computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.utils import timezone
from ninja import Body as Sent
from ninja import Query, Router, Schema
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from monitor.analysis.forecasts.job_outcomes import (
    ConflictingOutcome,
    InvalidOutcome,
    JobOutcome,
    OutcomeError,
    UnknownForecast,
    accuracy,
    record_job_outcome,
    record_job_outcomes,
)
from monitor.models import Outcome
from monitor.models.token import OUTCOME
from monitor.web.api.http.answers import answer, created
from monitor.web.api.http.auth import SCHEDULER_AUTH, require_outcome_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import MOST_CHARACTERS, Body, Name, RowId, Time

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

ME = "me"
router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)
_STATUS: dict[type[OutcomeError], tuple[int, str]] = {
    UnknownForecast: (404, "unknown_forecast"),
    ConflictingOutcome: (409, "conflict"),
}
_INVALID = (422, "invalid")
MOST_OUTCOMES = 1000  # of a request


JobResult = Literal["passed", "failed"]


class OutcomeIn(Body):
    """What became of a job. *seconds* is the actual duration of what was forecast; by default, the time from
    *started_at* to *ended_at*."""

    job: Name
    outcome: JobResult
    started_at: Time
    ended_at: Time
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class JobOutcomeIn(OutcomeIn):
    """The outcome of a job, with the *forecast* that was requested for it."""

    forecast: Annotated[int, Field(ge=1, lt=2**63)]


@dataclass(frozen=True)
class Unreadable:
    """The *error* of an outcome that is not of the declared form."""

    error: str


def _or_error(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return the validated *value*, or why it is invalid: the other outcomes of the request count."""
    try:
        return validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:MOST_CHARACTERS]
        return Unreadable(f"{place}: {first['msg']}" if place else first["msg"])


JobOutcomes = Annotated[
    list[Annotated[JobOutcomeIn, WrapValidator(_or_error)]], Field(min_length=1, max_length=MOST_OUTCOMES)
]


class OutcomeOut(Schema):
    """The stored outcome of a job; *is_duplicate*: it was stored before."""

    forecast: int
    job: str
    outcome: JobResult
    seconds: float
    received_at: datetime
    is_duplicate: bool


class OutcomeReceipt(Schema):
    """What became of one outcome. *stored* is null if it was refused: *code* and *error* say why."""

    stored: OutcomeOut | None = Field(description="The stored outcome.")
    code: Literal["", "conflict", "invalid", "unknown_forecast"]
    error: str


class OutcomeReceipts(Schema):
    """A receipt for each outcome, in the order of the request; *refused*: the positions of refused ones."""

    outcomes: list[OutcomeReceipt]
    refused: list[int]


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


class OutcomeQuery(Sparse):
    job: Name


class AccuracyQuery(Sparse):
    consumer: Name = ME


@router.post(
    "/forecasts/{forecast}/outcome",
    response={200: OutcomeOut, 201: OutcomeOut},
    operation_id="report_outcome",
    openapi_extra=declare(
        scope=OUTCOME,
        errors={404: ["unknown_forecast"], 409: ["conflict"]},
        permission=require_outcome_permission,
    ),
    summary="Report the outcome of a job that a forecast was requested for",
)
def report_outcome(request: HttpRequest, forecast: RowId, outcome: OutcomeIn) -> HttpResponse:
    """The outcome is scored against the forecast. The duration of a passed job becomes part of the history
    from which later forecasts learn. Reporting the same outcome again has no effect."""
    try:
        stored, is_new = record_job_outcome(request.user, forecast, _job_outcome(outcome), timezone.now())
    except OutcomeError as error:
        status, code = _STATUS.get(type(error), _INVALID)
        raise Refused(status, code, str(error)) from error
    location = f"/forecasts/{forecast}/outcome?{urlencode({'job': stored.job})}"
    shown = _shown(stored, is_duplicate=not is_new)
    return created(shown, status=201 if is_new else 200, location=location)


@router.post(
    "/forecasts/outcomes",
    response=OutcomeReceipts,
    operation_id="report_outcomes",
    openapi_extra=declare(
        scope=OUTCOME,
        permission=require_outcome_permission,
        example=[
            {
                "forecast": 4711,
                "job": "slurm-81",
                "outcome": "passed",
                "started_at": "2026-03-01T12:00:00Z",
                "ended_at": "2026-03-01T12:10:00Z",
            }
        ],
    ),
    summary="Report the outcomes of many jobs",
)
def report_outcomes(request: HttpRequest, outcomes: Sent[JobOutcomes]) -> HttpResponse:
    """The server stores at most 1,000 outcomes in one transaction. A refused outcome has its own error and
    keeps no other from being stored; the same request may be sent again."""
    readable = [(each.forecast, _job_outcome(each)) for each in outcomes if not isinstance(each, Unreadable)]
    results = iter(record_job_outcomes(request.user, readable, timezone.now()))
    receipts = [
        _receipt(InvalidOutcome(each.error) if isinstance(each, Unreadable) else next(results))
        for each in outcomes
    ]
    refused = [position for position, receipt in enumerate(receipts) if receipt["stored"] is None]
    return answer({"outcomes": receipts, "refused": refused})


@router.get(
    "/forecasts/{forecast}/outcome",
    response=OutcomeOut,
    operation_id="show_outcome",
    openapi_extra=declare(errors={404: ["unknown_outcome"]}),
    summary="Show the outcome of a job that you reported",
)
def show_outcome(request: HttpRequest, forecast: RowId, query: Query[OutcomeQuery]) -> HttpResponse:
    own = Outcome.objects.filter(consumer=request.user.pk, forecast=forecast, job=query.job)
    stored = own.visible_to(request.user).first()
    if stored is None:
        detail = f"you reported no job {query.job!r} of the forecast {forecast}"
        raise Refused(404, "unknown_outcome", detail)
    return show_item(query, _shown(stored, is_duplicate=True), OutcomeOut)


@router.get(
    "/forecasts/accuracy",
    response=AccuracyOut,
    operation_id="show_accuracy",
    openapi_extra=declare(errors={404: ["unknown_consumer"]}),
    summary="Show the accuracy of the forecasts for a consumer",
)
def show_accuracy(request: HttpRequest, query: Query[AccuracyQuery]) -> HttpResponse:
    """*consumer* is ``me``, or another user name if you may see the outcomes of other users."""
    user = request.user if query.consumer == ME else _other(request, query.consumer)
    scores = AccuracyOut(consumer=user.get_username(), **vars(accuracy(user, request.user)))
    return show_item(query, scores, AccuracyOut)


def _job_outcome(outcome: OutcomeIn) -> JobOutcome:
    return JobOutcome(
        outcome.job,
        outcome.outcome == "passed",
        outcome.started_at,
        outcome.ended_at,
        outcome.seconds,
    )


def _receipt(result: tuple[Outcome, bool] | OutcomeError) -> dict[str, Any]:
    """Return the fields of ``OutcomeReceipt``."""
    if isinstance(result, OutcomeError):
        _, code = _STATUS.get(type(result), _INVALID)
        return {"stored": None, "code": code, "error": str(result)}
    stored, is_new = result
    return {"stored": _shown(stored, is_duplicate=not is_new).model_dump(), "code": "", "error": ""}


def _shown(stored: Outcome, *, is_duplicate: bool) -> OutcomeOut:
    return OutcomeOut(
        forecast=stored.forecast_id,
        job=stored.job,
        outcome="passed" if stored.passed else "failed",
        seconds=stored.seconds or 0.0,
        received_at=stored.received_at,
        is_duplicate=is_duplicate,
    )


def _other(request: HttpRequest, name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None or not (user == request.user or request.user.has_perm("monitor.view_outcome")):
        raise Refused(404, "unknown_consumer", f"there is no consumer {name!r} whose outcomes you may see")
    return user
