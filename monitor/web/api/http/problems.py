"""Errors as RFC 9457 problem details."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, JsonResponse, UnreadablePostError
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError

from monitor.analysis.forecasts.not_ready import NotReady
from monitor.core.clipping import MOST_ERRORS, MOST_MESSAGE, MOST_PARTS, clipped, clipped_texts
from monitor.core.log import request_id
from monitor.core.statement_timeout import is_cancelled
from monitor.runs.ingest.disk_guard import RETRY_SECONDS, DepotFull

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.http import HttpRequest, HttpResponse
    from ninja import NinjaAPI

METHOD_NOT_ALLOWED = 405
MOST_DETAIL = 1_900  # characters of the errors of all fields; less than of a message
MOST_ERROR = 300  # characters of a text of one of several errors
_CODES = {400: "malformed", 403: "not_allowed", 429: "too_many_requests"}  # of errors that Ninja raises


class Refused(Exception):
    """Ends a request; the answer is a problem, whose *code* is stable, so that programs can rely on it.

    *retry_seconds*: the client may try again after this time.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, retry_seconds: int | None = None, **extra: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.extra = status, code, detail, extra
        self.retry_seconds = retry_seconds


class InvalidFields(ValidationError):
    """The first errors of a request that is not valid; *more*: how many errors are left out."""

    def __init__(self, errors: list[dict[str, Any]], more: int) -> None:
        super().__init__(errors)
        self.more = more


def problem(status: int, code: str, detail: str, **extra: Any) -> HttpResponse:
    """Return a problem. What its texts repeat of the request is clipped here."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    body |= {"detail": clipped(detail, MOST_MESSAGE), "request": request_id.get(), **clipped_texts(extra)}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def not_authenticated() -> HttpResponse:
    answer = problem(
        401, "not_authenticated", "send a valid token: Authorization: Bearer gcast_..., or log in"
    )
    answer["WWW-Authenticate"] = 'Bearer realm="gridcast"'
    return answer


def too_many_requests(retry_seconds: int) -> HttpResponse:
    detail = f"too many requests; try again in {retry_seconds} s"
    return _with_retry(problem(429, "too_many_requests", detail), retry_seconds)


def too_much_processor_time(retry_seconds: int) -> HttpResponse:
    detail = f"the processor time of this caller is used up; try again in {retry_seconds} s"
    return _with_retry(problem(429, "too_many_requests", detail), retry_seconds)


def dear_requests_under_way(retry_seconds: int) -> HttpResponse:
    detail = f"other requests of this caller that take as long are under way; try again in {retry_seconds} s"
    return _with_retry(problem(429, "too_many_requests", detail), retry_seconds)


def not_allowed(request: HttpRequest, allow: Collection[str]) -> HttpResponse:
    """Return a 405 problem; *allow* has the methods of the path."""
    methods = ", ".join(sorted(allow))
    method = clipped(str(request.method))
    detail = f"{clipped(request.path)} does not take {method}; it takes {methods}"
    answer = problem(METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    answer["Allow"] = methods
    return answer


def register(api: NinjaAPI) -> None:
    """Answer every error of the API as a problem."""
    handlers: dict[type[Exception], Any] = {
        Refused: of_refused,
        Http404: lambda error: problem(404, "not_found", str(error) or "not found"),
        AuthenticationError: lambda _: not_authenticated(),
        ValidationError: _invalid,
        Throttled: lambda error: too_many_requests(math.ceil(error.wait or 1)),
        HttpError: _of_ninja,
        TooManyFieldsSent: lambda _: problem(
            400, "malformed", f"expected at most {_most_fields()} parameters"
        ),
        SuspiciousOperation: lambda error: problem(400, "malformed", str(error)),
        RequestDataTooBig: lambda _: problem(
            413, "too_large", f"expected a body of at most {_most_bytes()} bytes"
        ),
        UnreadablePostError: lambda error: problem(400, "malformed", f"the body ended too early: {error}"),
        DataError: lambda error: problem(422, "invalid", f"the database cannot store such a value: {error}"),
        UnicodeEncodeError: lambda _: problem(422, "invalid", "expected text without lone surrogates"),
        NotReady: _not_ready,
        DepotFull: lambda error: _with_retry(problem(507, "depot_full", str(error)), RETRY_SECONDS),
        OperationalError: lambda error: too_slow() if is_cancelled(error) else depot_unavailable(),
        InterfaceError: lambda _: depot_unavailable(),  # the connection broke during the request
    }
    for kind, answer in handlers.items():
        api.add_exception_handler(kind, _handler(answer))


def depot_unavailable(retry_seconds: int = 5) -> HttpResponse:
    detail = "the database is unreachable; try again in a few seconds"
    return _with_retry(problem(503, "depot_away", detail), retry_seconds)


def too_slow(retry_seconds: int = 30) -> HttpResponse:
    """Return the answer to a request whose statement PostgreSQL cancelled."""
    seconds = settings.GRIDCAST_WEB_STATEMENT_SECONDS
    detail = (
        f"the database did not finish a statement of this request within {seconds} s, and it was cancelled:"
        " ask for less, for example a shorter time range or fewer series, or try again later"
    )
    return _with_retry(problem(503, "too_slow", detail), retry_seconds)


def _handler(answer: Any) -> Any:
    def handle(_request: HttpRequest, error: Exception) -> HttpResponse:
        response: HttpResponse = answer(error)
        return response

    return handle


def of_refused(error: Refused) -> HttpResponse:
    answer = problem(error.status, error.code, error.detail, **error.extra)
    if error.status == HTTPStatus.UNAUTHORIZED:
        answer["WWW-Authenticate"] = 'Bearer realm="gridcast"'
    return answer if error.retry_seconds is None else _with_retry(answer, error.retry_seconds)


def _not_ready(error: NotReady) -> HttpResponse:
    answer = _with_retry(problem(503, "not_ready", str(error)), error.retry_seconds)
    if error.preference:
        answer["Preference-Applied"] = error.preference
    return answer


def _of_ninja(error: HttpError) -> HttpResponse:
    """Return the problem of an error that Ninja raises; if reading the body failed, with the cause."""
    cause = error.__cause__
    if isinstance(cause, Refused):
        return of_refused(cause)
    return problem(error.status_code, _CODES.get(error.status_code, "error"), error.message)


def _most_bytes() -> str:
    return f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,}"


def _most_fields() -> str:
    return f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}"


def _invalid(error: ValidationError) -> HttpResponse:
    errors = [_as_sent(each) for each in error.errors[:MOST_ERRORS]]
    more = len(error.errors) - len(errors) + (error.more if isinstance(error, InvalidFields) else 0)
    detail = "; ".join(_field_message(each) for each in errors)
    return problem(422, "invalid", f"{clipped(detail, MOST_DETAIL)}{_and_more(more)}", errors=errors)


def _and_more(count: int) -> str:
    return f"; and {count:,} more" if count else ""


def _as_sent(error: dict[str, Any]) -> dict[str, Any]:
    """Return *error* with the location in the request; ninja adds the name of our Python parameter."""
    kind, *place = error["loc"]
    place = [clipped(part) if isinstance(part, str) else part for part in place[:MOST_PARTS]]
    return {
        **clipped_texts(error, MOST_ERROR),
        "loc": [kind, *(place[1:] if kind == "body" else place)],
    }


def _field_message(error: dict[str, Any]) -> str:
    return f"{'.'.join(str(part) for part in error['loc'][1:] or error['loc'])}: {error['msg']}"


def _with_retry(response: HttpResponse, seconds: int) -> HttpResponse:
    response["Retry-After"] = str(seconds)
    return response
