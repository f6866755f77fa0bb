"""Ingest of reports over HTTP."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec
from django.http import HttpResponse
from ninja import Router, Schema
from ninja.decorators import decorate_view

from monitor.models.token import REPORT
from monitor.runs.ingest import report_schema
from monitor.runs.ingest.http_senders import SentReports
from monitor.web.api.http import envelope
from monitor.web.api.http.auth import ReportRights, SenderAuth, report_rights
from monitor.web.api.http.declare import declare
from monitor.web.api.http.envelope import EnvelopeError, MalformedBody
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import problem
from monitor.web.api.http.request_body import read_body, refusal
from monitor.web.api.http.static_answer import StaticAnswer
from monitor.web.api.http.store_reports import ReportsBusy, announced, receipt_fields, refuse_conflict, store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from monitor.runs.ingest.receipt import ReportReceipt

router = Router(tags=["reports"])


class ReceiptOut(Schema):
    """The sender may delete a report that is *accepted*, even if it is a *duplicate*: the same report was
    stored before. *conflict*: another report of the run was stored before; this one, if accepted, is kept
    beside it and changes nothing. If a report is refused, *error* names the invalid field. *run* is null if
    the report does not name its run."""

    run: uuid.UUID | None
    accepted: bool
    duplicate: bool
    conflict: bool
    error: str


class Receipts(Schema):
    """One receipt per report, in the order sent. *refused* lists the positions of refused reports, from 0."""

    receipts: list[ReceiptOut]
    refused: list[int]


_REPORT = {"type": "object", "description": "a report, version 1: its JSON Schema is /api/v1/reports/schema"}
_BODY = {
    "required": True,
    "description": (
        f"One report, a JSON array, or NDJSON: at most {envelope.MAX_REPORTS} reports and"
        f" {envelope.MAX_BYTES} bytes, both compressed (Content-Encoding: gzip or zstd) and uncompressed."
    ),
    "content": {
        envelope.JSON: {"schema": {"oneOf": [_REPORT, {"type": "array", "items": _REPORT, "minItems": 1}]}},
        envelope.NDJSON: {"schema": {"type": "string", "description": "one report per line"}},
    },
}
SCHEMA_JSON = "application/schema+json"
_SCHEMA = {
    "description": "The schema of version 1",
    "content": {SCHEMA_JSON: {"schema": {"type": "object"}}},
}
_SCHEMA_ANSWER = StaticAnswer(lambda: msgspec.json.encode(report_schema.schema()), SCHEMA_JSON)
_ERRORS = {403: ["no_reporter"], 409: ["conflict"], 422: ["refused"], 503: ["busy"], 507: ["depot_full"]}


@router.post(
    "/reports",
    auth=SenderAuth(),
    response=Receipts,
    operation_id="send_reports",
    summary="Send reports; the answer follows the commit",
    openapi_extra=declare(scope=REPORT, errors=_ERRORS, subject=report_rights, requestBody=_BODY),
)
@decorate_view(announced)
def ingest_reports(request: HttpRequest) -> HttpResponse:
    """Each report is identified by series and slot and stored once, so sending it again is harmless. Each
    invalid report, and each report of a series that the token's reporter does not run, is refused with its
    error; the others are stored."""
    rights: ReportRights = subject_of(request)
    try:
        bodies = envelope.reports(read_body(request), request.content_type or envelope.JSON)
        if not bodies:
            raise MalformedBody("expected a report, got none")
        return _answer(store(SentReports(bodies, rights.reporter, rights.visible)))
    except EnvelopeError as error:
        raise refusal(error) from error
    except ReportsBusy as error:
        return error.answer()


@router.get(
    "/reports/schema",
    auth=None,
    operation_id="show_report_schema",
    openapi_extra=declare(responses={200: _SCHEMA}),
    summary="Return the JSON Schema of reports",
)
def show_report_schema(request: HttpRequest) -> HttpResponse:
    """The schema in draft 2020-12; docs/reports.md describes the fields in words."""
    return _SCHEMA_ANSWER(request)


def _answer(receipts: Sequence[ReportReceipt]) -> HttpResponse:
    if len(receipts) == 1:
        refuse_conflict(receipts[0])
    fields = [receipt_fields(receipt) for receipt in receipts]
    refused = [position for position, receipt in enumerate(receipts) if not receipt.accepted]
    if len(refused) == len(receipts):
        return problem(422, "refused", _first_error(fields), receipts=fields)
    body = msgspec.json.encode({"receipts": fields, "refused": refused})
    return HttpResponse(body, content_type="application/json; charset=utf-8")


def _first_error(fields: Sequence[dict[str, Any]]) -> str:
    first = fields[0]["error"]
    return first if len(fields) == 1 else f"none of {len(fields)} reports was accepted; the first: {first}"
