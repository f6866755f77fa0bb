"""Operations for the agents of remote reporters (docs/reporter-protocol.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from django.http import HttpResponse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import StringConstraints

from monitor.api.http.client_address import client_address
from monitor.api.http.problems import Refused, problem
from monitor.fleet import enrolment, signatures
from monitor.fleet.enrolment import EnrolmentRequest
from monitor.fleet.exchange import EXCHANGE_SECONDS

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["agents of reporters"])


class EnrolIn(Schema):
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
    summary="Enrol an agent with a code",
)
def enrol(request: HttpRequest, body: EnrolIn) -> dict[str, Any] | HttpResponse:
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
        answer = problem(429, "too_many_attempts", str(error))
        answer["Retry-After"] = str(error.retry_seconds)
        return answer
    return {
        "reporter": key.reporter.name,
        "server_key": signatures.server_public_key(key.method),
        "server_fingerprint": signatures.server_fingerprint(),
        "exchange_seconds": EXCHANGE_SECONDS,
    }
