"""Answers without a database or a session: it is unreachable, or has cancelled a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string

from monitor.core.statement_timeout import is_cancelled
from monitor.health import supervised
from monitor.web.api.http.problems import depot_unavailable, too_slow

if TYPE_CHECKING:
    from collections.abc import Callable

RETRY_SECONDS = 3
# SQLSTATE classes: connection lost, server shutting down or starting, too many connections.
_UNREACHABLE = ("08", "57P", "53300")


class OutageMiddleware:
    """Answer requests whose view could not reach the database, or whose statement took too long."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return of_database_error(request, error)


def of_database_error(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """Return the answer to *error* if the database was unreachable or cancelled a statement; else None."""
    if is_cancelled(error):
        return _took_too_long(request)
    return answer(request) if is_outage(error) else None


def is_outage(error: BaseException | None) -> bool:
    """Return whether *error* means that the database is unreachable; a refused statement is no outage."""
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(_UNREACHABLE)


def _took_too_long(request: HttpRequest) -> HttpResponse:
    if request.path.startswith("/api/"):
        return too_slow()
    is_part = request.headers.get("HX-Request") == "true"
    template = "parts/too_slow.html" if is_part else "pages/too_slow.html"
    text = render_to_string(template, {"seconds": settings.GRIDCAST_WEB_STATEMENT_SECONDS})
    headers = {"HX-Retarget": "#banner", "HX-Reswap": "innerHTML"} if is_part else {}
    return HttpResponse(text, status=503, headers={**headers, "Cache-Control": "no-store"})


def answer(request: HttpRequest) -> HttpResponse:
    """Return a 503: a problem for the API, a banner for htmx, otherwise a page."""
    if request.path.startswith("/api/"):
        response = depot_unavailable(RETRY_SECONDS)
    elif request.headers.get("HX-Request") == "true":
        # htmx shows this answer in the banner; the updated part keeps its content.
        headers = {"HX-Retarget": "#banner", "HX-Reswap": "innerHTML"}
        response = HttpResponse(render_to_string("parts/outage.html"), status=503, headers=headers)
    else:
        services = supervised()
        is_restarting = any(service.state in {"starting", "restarting"} for service in services.values())
        context = {"services": services, "is_restarting": is_restarting, "retry_seconds": RETRY_SECONDS}
        response = HttpResponse(render_to_string("pages/outage.html", context), status=503)
    response["Retry-After"] = str(RETRY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
