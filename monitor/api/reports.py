"""Reports: what reporters say of their runs, taken into the depot."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec
from django.http import HttpResponse, UnreadablePostError
from ninja import Router, Schema

from monitor.api import envelope
from monitor.api.auth import PersonAuth, SenderAuth, reportable
from monitor.api.envelope import EnvelopeError, Malformed, TooMuch, Unsupported
from monitor.api.problems import Refused, problem
from monitor.ingest.group_commit import QueueFull
from monitor.ingest.http_senders import IngestBusy, SentReports, sender_commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from monitor.ingest.service import Receipt

router = Router()
BUSY_SECONDS = 1
_ERROR_CHARACTERS = 500
_STATUS: dict[type[EnvelopeError], tuple[int, str]] = {
    Unsupported: (415, "unsupported"),
    TooMuch: (413, "too_large"),
    Malformed: (400, "malformed"),
}


class ReceiptOut(Schema):
    """What became of one report. With *accepted* its sender may forget it, *duplicate* or not; else *error*
    names the field. *run* is null where the report does not tell it."""

    run: uuid.UUID | None
    accepted: bool
    duplicate: bool
    error: str


class Receipts(Schema):
    """One for each report, in their order; *refused*: the places, from 0, of those that were not accepted."""

    receipts: list[ReceiptOut]
    refused: list[int]


_REPORT = {"type": "object", "description": "a report, version 1; the reference describes it"}
_BODY = {
    "required": True,
    "description": (
        f"One report, an array of them, or one a line: at most {envelope.MAX_REPORTS} and"
        f" {envelope.MAX_BYTES} bytes, packed (Content-Encoding: gzip or zstd) and unpacked."
    ),
    "content": {
        envelope.JSON: {"schema": {"oneOf": [_REPORT, {"type": "array", "items": _REPORT}]}},
        envelope.NDJSON: {"schema": {"type": "string", "description": "a report a line"}},
    },
}
_PROBLEMS = {
    400: "Not what it is said to be: nothing was stored",
    401: "No token, or one that is not valid",
    403: "The token has not the scope report, or its user may not add raw reports",
    413: "More bytes or more reports than are taken at once: nothing was stored",
    415: "A type or a packing that is not read",
    422: "Every report was refused: the receipts name the fields",
    503: "Too many are at it, or the depot is away: send the same again after Retry-After",
    507: "The depot is full, and nothing was stored: send the same again after Retry-After",
}
_RESPONSES = {
    status: {"description": said, "content": {"application/problem+json": {"schema": {"type": "object"}}}}
    for status, said in _PROBLEMS.items()
}


@router.post(
    "",
    auth=[SenderAuth(), PersonAuth()],
    response=Receipts,
    summary="Send reports; answered when they are stored",
    openapi_extra={"requestBody": _BODY, "responses": _RESPONSES},
)
def send(request: HttpRequest) -> HttpResponse:
    """Each is stored once, however often it comes: its identity is its series and slot. Those that cannot be
    stored are refused one by one, and say why; the others are stored all the same."""
    visible = reportable(request)
    try:
        bodies = envelope.reports(_body(request), request.content_type or envelope.JSON)
        if not bodies:
            raise Malformed("expected a report, got none")
        return _answer(sender_commit.submit(SentReports(bodies, visible)))
    except EnvelopeError as error:
        raise Refused(*_STATUS[type(error)], str(error)) from error
    except (QueueFull, IngestBusy) as error:
        return _come_again(error)


def _body(request: HttpRequest) -> bytes:
    """What was sent, unpacked. Raises EnvelopeError."""
    # Of a body that comes in chunks Django knows no length, and reads nothing; the server knows its end.
    is_chunked = "HTTP_TRANSFER_ENCODING" in request.META and request.META.get("wsgi.input_terminated")
    stream = request.META["wsgi.input"] if is_chunked else request
    try:
        return envelope.read(stream, request.headers.get("Content-Encoding", "").strip().lower())
    except (OSError, UnreadablePostError) as error:
        raise Malformed(f"it ended too early: {error}") from error


def _answer(receipts: Sequence[Receipt]) -> HttpResponse:
    shown = [_shown(receipt) for receipt in receipts]
    refused = [place for place, receipt in enumerate(receipts) if not receipt.accepted]
    if len(refused) == len(receipts):
        return problem(422, "refused", _why(shown), receipts=shown)
    body = msgspec.json.encode({"receipts": shown, "refused": refused})
    return HttpResponse(body, content_type="application/json; charset=utf-8")


def _shown(receipt: Receipt) -> dict[str, Any]:
    return {
        "run": str(receipt.run) if receipt.run else None,
        "accepted": receipt.accepted,
        "duplicate": receipt.duplicate,
        "error": receipt.error[:_ERROR_CHARACTERS],
    }


def _why(shown: Sequence[dict[str, Any]]) -> str:
    first = shown[0]["error"]
    return first if len(shown) == 1 else f"none of {len(shown)} reports was accepted; the first: {first}"


def _come_again(error: QueueFull | IngestBusy) -> HttpResponse:
    answer = problem(503, "busy", f"{error}; try again in a second")
    answer["Retry-After"] = str(BUSY_SECONDS)
    return answer
