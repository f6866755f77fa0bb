"""Pings: a program outside of gridcast reports starts and ends of its runs without writing a report."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.db import IntegrityError
from django.utils import timezone
from ninja import Path, Query, Router, Schema
from psycopg.errors import ForeignKeyViolation
from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from monitor.depot.access.ping_keys import NotReported, check_reported
from monitor.models import PingKey, Run, Series
from monitor.models.token import REPORT
from monitor.runs.ingest import pings
from monitor.runs.ingest.http_senders import SentReports
from monitor.runs.ingest.short_reports import RID_PATTERN
from monitor.web.api.http.auth import SenderAuth, report_rights
from monitor.web.api.http.declare import declare
from monitor.web.api.http.envelope import JSON, EnvelopeError
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.request_body import read_body, refusal
from monitor.web.api.http.schemas import Body
from monitor.web.api.http.store_reports import ReportsBusy, refuse_conflict, store
from monitor.web.api.http.strict import parse_json

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.runs.ingest.receipt import ReportReceipt

router = Router(tags=["reports"])
START = "start"


def _signal(value: Any) -> Any:
    """Say in words what *value* should be: the pattern says it to programs.

    Not a ValueError: pydantic would keep it, and with its traceback the request, for ever.
    """
    if not re.fullmatch(_SIGNALS, str(value)):
        text = f"expected start, fail, or an exit status from 0 to 255, got {str(value)[:100]!r}"
        raise PydanticCustomError("unknown_signal", "{text}", {"text": text})
    return value


_SIGNALS = r"^(start|fail|[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$"
Signal = Annotated[
    str,
    BeforeValidator(_signal),
    Path(
        pattern=_SIGNALS,
        description="`start`, `fail`, or the exit status of the program: 0 has passed, 1 to 255 have failed.",
        examples=["start", "fail", "3"],
    ),
]
Rid = Annotated[
    str,
    Query(
        pattern=rf"^({RID_PATTERN})?$",
        description="The caller's id of the run, 1 to 100 visible ASCII characters: pairs a start with its"
        " end, and makes a repeated ping harmless. Without it an end belongs to the last start.",
        examples=["b5b2c7de-9f6c-4d57-a7d1-3a41a8f2f6c1"],
    ),
]
Key = Annotated[str, Path(description="The secret key of the series: `manage.py ping_key create SERIES`.")]


class PingOut(Schema):
    """The run that the ping belongs to, and its state. *duplicate*: an earlier ping said the same."""

    series: str
    run: uuid.UUID
    slot: datetime
    state: str
    duplicate: bool


class PingIn(Body):
    """What the program has printed."""

    output: str = Field("", description="The end of the program's output; long texts are cut.")


_OUTPUT: dict[str, Any] = {
    "description": "The end of the program's output, as JSON or as plain text in UTF-8.",
    "content": {
        JSON: {"schema": PingIn.model_json_schema()},
        "text/plain": {"schema": {"type": "string"}},
    },
}
_ERRORS = {404: ["not_found"], 409: ["not_reported", "conflict"], 503: ["busy"], 507: ["depot_full"]}


def _series_of_key(request: HttpRequest, key: str, **_: object) -> Series:
    ping_key = PingKey.objects.find(key, timezone.now())
    if ping_key is None:
        raise Refused(404, "not_found", "there is no such ping key: it is wrong, or it was revoked")
    request.ping_key = ping_key.pk  # type: ignore[attr-defined]  # for ``processor_budget``
    return ping_key.series


def _series(request: HttpRequest, series: str, **_: object) -> Series:
    """Return the series, which the token of *request* may report."""
    rights = report_rights(request)
    visible = Series.objects.all() if rights.visible is None else rights.visible
    mine = visible.filter(reporter__name=rights.reporter).select_related("reporter")
    found = mine.filter(name=series).first() if "\x00" not in series else None
    if found is None:
        detail = f"no series {series!r} is assigned to the reporter {rights.reporter!r} of the token"
        raise Refused(404, "not_found", detail)
    return found


_BY_TOKEN = declare(
    scope=REPORT, errors={**_ERRORS, 403: ["no_reporter"]}, subject=_series, requestBody=_OUTPUT
)


def _register_by_key(method: str, text: str, operation_id: str, declared: dict[str, Any]) -> None:
    """Add the pings by key with *method*; *text* ends their summaries."""
    options: dict[str, Any] = {"auth": None, "response": PingOut, "openapi_extra": declared}

    @router.api_operation(
        [method],
        "/ping/{key}",
        operation_id=f"ping_{operation_id}",
        summary=f"A run has passed{text}",
        **options,
    )
    def ping_success(request: HttpRequest, key: Key, rid: Rid = "") -> Any:
        return _ping(request, "", rid)

    @router.api_operation(
        [method],
        "/ping/{key}/{signal}",
        operation_id=f"ping_signal_{operation_id}",
        summary=f"A run starts or ends{text}",
        **options,
    )
    def ping_signal(request: HttpRequest, key: Key, signal: Signal, rid: Rid = "") -> Any:
        return _ping(request, signal, rid)


_register_by_key("GET", "", "by_key", declare(errors=_ERRORS, subject=_series_of_key))
_register_by_key(
    "POST",
    "; with its output",
    "with_text_by_key",
    declare(errors=_ERRORS, subject=_series_of_key, requestBody=_OUTPUT),
)


@router.post(
    "/series/{series}/ping",
    auth=SenderAuth(),
    response=PingOut,
    operation_id="ping_series",
    summary="A run of a series has passed",
    openapi_extra=_BY_TOKEN,
)
def ping_series(request: HttpRequest, series: str, rid: Rid = "") -> Any:
    return _ping(request, "", rid)


@router.post(
    "/series/{series}/ping/{signal}",
    auth=SenderAuth(),
    response=PingOut,
    operation_id="ping_series_signal",
    summary="A run of a series starts or ends",
    openapi_extra=_BY_TOKEN,
)
def ping_series_signal(request: HttpRequest, series: str, signal: Signal, rid: Rid = "") -> Any:
    return _ping(request, signal, rid)


def _ping(request: HttpRequest, signal: str, rid: str) -> PingOut | HttpResponse:
    series: Series = subject_of(request)
    output = _output(request)
    try:
        check_reported(series)
    except NotReported as error:
        raise Refused(409, "not_reported", str(error)) from error
    if signal == START:
        try:
            started = pings.start_run(series, rid, timezone.now())
        except IntegrityError as error:
            if not isinstance(error.__cause__, ForeignKeyViolation):
                raise
            raise Refused(404, "not_found", f"the series {series.name} was deleted meanwhile") from error
        return PingOut(
            series=series.name,
            run=started.run,
            slot=started.slot,
            state=started.state,
            duplicate=started.is_known,
        )
    try:
        report = pings.end_report(series.name, signal, rid, output)
        (receipt,) = store(SentReports([report], series.reporter.name, None))
    except ReportsBusy as error:
        return error.answer()
    return _ended(series, receipt)


def _output(request: HttpRequest) -> str:
    """Return the output in the body of *request*, which is text unless it says that it is JSON."""
    try:
        body = read_body(request) if request.method == "POST" else b""
    except EnvelopeError as error:
        raise refusal(error) from error
    if request.content_type != JSON or not body:
        return body.decode(errors="replace")
    try:
        output = PingIn.model_validate(parse_json(body)).output
        output.encode()  # a lone surrogate is no text
        return output
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:100]
        raise Refused(422, "invalid", f"{place}: {first['msg']}") from None
    except UnicodeEncodeError as error:
        raise Refused(400, "malformed", f"expected JSON: {error}") from None


def _ended(series: Series, receipt: ReportReceipt) -> PingOut:
    refuse_conflict(receipt)
    if receipt.stored is None:
        raise Refused(422, "refused", receipt.error)
    run, slot = receipt.stored
    state = Run.objects.filter(pk=run, slot=slot).values_list("state", flat=True).get()
    return PingOut(series=series.name, run=run, slot=slot, state=state, duplicate=receipt.duplicate)
