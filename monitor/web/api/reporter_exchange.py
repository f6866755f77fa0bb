"""Operations for the agents of remote reporters (docs/reporter-protocol.md)."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import StringConstraints

from monitor.operations.web_server.client_address import client_address
from monitor.runs.fleet import enrolment, signatures
from monitor.runs.fleet.agent_state import MAX_BYTES
from monitor.runs.fleet.enrolment import EnrolmentRequest
from monitor.runs.fleet.exchange import EXCHANGE_SECONDS, TooManyExchanges, exchange, sign
from monitor.runs.fleet.signatures import Purpose
from monitor.runs.ingest.chain_limit import TooManyChains, TooManyExtraRecords
from monitor.runs.ingest.http_senders import IngestBusy, ingest_records
from monitor.web.api.http import envelope
from monitor.web.api.http.auth import AgentAuth, agent_key
from monitor.web.api.http.declare import declare
from monitor.web.api.http.envelope import EnvelopeError
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.request_body import read_body, refusal
from monitor.web.api.http.schemas import Body
from reporters.fields import Unfit
from reporters.report import rfc3339
from reporters.spool.lanes import Lane
from reporters.spool.records import MOST_RECORDS, MalformedRecords

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["agents of reporters"])
RECORDS, OCTETS = "application/vnd.gridcast.records", "application/octet-stream"
CHAINS_SECONDS = 600
LANE = "Gridcast-Lane"


class EnrolIn(Body):
    """The request of an agent; *signature* is one of the code, upper case and without hyphens."""

    code: Annotated[str, StringConstraints(max_length=100)]
    method: Annotated[str, StringConstraints(max_length=20)]
    public_key: Annotated[str, StringConstraints(max_length=signatures.MAX_KEY_CHARACTERS)]
    signature: Annotated[str, StringConstraints(max_length=signatures.MAX_SIGNATURE_CHARACTERS)]
    hostname: Annotated[str, StringConstraints(max_length=enrolment.MAX_HOSTNAME_CHARACTERS)] = ""
    archive_sha256: Annotated[str, StringConstraints(max_length=64)] = ""
    python: Annotated[str, StringConstraints(max_length=50)] = ""


class EnrolOut(Schema):
    """The agent checks *server_key* with the last eight characters of its code."""

    reporter: str
    server_key: str
    server_fingerprint: str
    exchange_seconds: int


@router.post(
    "/reporters/enrol",
    auth=None,
    response=EnrolOut,
    operation_id="enrol_reporter",
    openapi_extra=declare(
        errors={403: ["invalid_code", "invalid_signature"], 409: ["key_known"], 429: ["too_many_attempts"]}
    ),
    summary="Enrol an agent with a code",
)
def enrol(request: HttpRequest, body: EnrolIn) -> dict[str, Any]:
    """The same request gets the same answer while the code is valid in time. 403 ``invalid_code`` if the code
    is unknown, was used or has expired; 429 after too many invalid codes."""
    asked = EnrolmentRequest(body.code, body.method, body.public_key, body.signature, body.hostname)
    try:
        key = enrolment.enrol(asked, client_address(request), timezone.now())
    except signatures.InvalidReporterKey as error:
        raise Refused(422, "invalid", str(error)) from error
    except signatures.InvalidReporterSignature as error:
        raise Refused(403, "invalid_signature", str(error)) from error
    except enrolment.InvalidCode as error:
        raise Refused(403, "invalid_code", str(error)) from error
    except enrolment.KeyKnown as error:
        raise Refused(409, "key_known", str(error)) from error
    except enrolment.TooManyAttempts as error:
        raise _later(429, "too_many_attempts", str(error), error.retry_seconds) from error
    return {
        "reporter": key.reporter.name,
        "server_key": signatures.server_public_key(key.method),
        "server_fingerprint": signatures.server_fingerprint(),
        "exchange_seconds": EXCHANGE_SECONDS,
    }


class SignedOut(Schema):
    """JSON text, and the server's signature of it in the method of the agent."""

    document: str
    signature: str


class RequestOut(Schema):
    """A run that the agent is asked for: it does not start it after *expires_at*, nor twice."""

    run: uuid.UUID
    series: str
    slot: datetime
    expires_at: datetime


class ExchangeOut(Schema):
    """The times are in seconds since 1970, by the server's clock."""

    received_at: float
    answered_at: float
    assignment: SignedOut | None
    requests: list[RequestOut]
    exchange_seconds: int


class RecordsOut(Schema):
    """The receipt: the agent deletes the records that it covers."""

    receipt: SignedOut


_STATE_BODY = {
    "required": True,
    "description": f"The state of the agent (docs/reporter-protocol.md), at most {MAX_BYTES} bytes.",
    "content": {envelope.JSON: {"schema": {"type": "object"}}},
}
_RECORDS_BODY = {
    "required": True,
    "description": (
        f"Records of chains (docs/reporter-protocol.md): at most {MOST_RECORDS} records and"
        f" {envelope.MAX_BYTES} bytes, both compressed (Content-Encoding: gzip) and uncompressed."
    ),
    "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (OCTETS, RECORDS)},
}


_AGENT_ERRORS = {
    401: ["invalid_token", "revoked", "token_expired", "token_not_yet_valid"],
    403: ["not_yours"],
}
_EXCHANGE_ERRORS = {**_AGENT_ERRORS, 429: ["too_many_chains", "too_many_exchanges"]}
_RECORDS_ERRORS = {
    **_AGENT_ERRORS,
    429: ["too_many_chains", "too_many_records"],
    503: ["busy"],
    507: ["depot_full"],
}


@router.post(
    "/reporters/{reporter}/exchange",
    auth=AgentAuth(),
    response=ExchangeOut,
    operation_id="exchange_state",
    summary="Exchange the agent's state for its assignment",
    openapi_extra=declare(errors=_EXCHANGE_ERRORS, subject=agent_key, requestBody=_STATE_BODY),
)
def exchange_state(
    request: HttpRequest,
    reporter: str,
) -> HttpResponse:
    """Called by the agent every *exchange_seconds*. *assignment* is null if the agent has the newest one. 429
    with Retry-After: it exchanges too often, or has too many open chains."""
    received_at = timezone.now()
    key = subject_of(request)
    try:
        answer = exchange(key, read_body(request), received_at)
    except EnvelopeError as error:
        raise refusal(error) from error
    except Unfit as error:
        raise Refused(422, "invalid", str(error)) from error
    except TooManyExchanges as error:
        raise _later(429, "too_many_exchanges", str(error), error.retry_seconds) from error
    except TooManyChains as error:
        raise _later(429, "too_many_chains", str(error), CHAINS_SECONDS) from error
    requests = [
        {
            "run": str(asked.run),
            "series": asked.series,
            "slot": rfc3339(asked.slot),
            "expires_at": rfc3339(asked.expires_at),
        }
        for asked in answer.requests
    ]
    return _json(
        received_at=received_at.timestamp(),
        answered_at=timezone.now().timestamp(),
        assignment=answer.assignment,
        requests=requests,
        exchange_seconds=EXCHANGE_SECONDS,
    )


@router.post(
    "/reporters/{reporter}/records",
    auth=AgentAuth(),
    response=RecordsOut,
    operation_id="deliver_records",
    summary="Deliver records of the agent's spool; the answer follows the commit",
    openapi_extra=declare(errors=_RECORDS_ERRORS, subject=agent_key, requestBody=_RECORDS_BODY),
)
def deliver_records(request: HttpRequest, reporter: str) -> HttpResponse:
    """Each record is stored once, so sending it again is harmless. 400 if the body is malformed; 429, 503
    and 507 with Retry-After: nothing was stored."""
    key = subject_of(request)
    content_type = request.content_type or ""
    if content_type not in {RECORDS, OCTETS}:
        raise Refused(
            415, "unsupported", f"expected the type {RECORDS} or {OCTETS}, got {content_type[:100]!r}"
        )
    is_backlog = request.headers.get(LANE) == Lane.BACKLOG.value
    try:
        receipt = ingest_records(reporter, read_body(request), is_backlog=is_backlog)
    except EnvelopeError as error:
        raise refusal(error) from error
    except MalformedRecords as error:
        raise Refused(400, "malformed", str(error)) from error
    except IngestBusy as error:
        detail = f"{error}; try again in {error.retry_seconds} s"
        raise _later(503, "busy", detail, error.retry_seconds) from error
    except TooManyChains as error:
        raise _later(429, "too_many_chains", str(error), CHAINS_SECONDS) from error
    except TooManyExtraRecords as error:
        raise _later(429, "too_many_records", str(error), error.retry_seconds) from error
    return _json(receipt=sign(key, Purpose.RECEIPT, receipt.to_document()))


def _later(status: int, code: str, detail: str, seconds: int) -> Refused:
    return Refused(status, code, detail, retry_seconds=seconds)


def _json(**fields: Any) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(fields), content_type="application/json; charset=utf-8")
