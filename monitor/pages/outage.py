"""What is answered while the depot is away: what is going on, in words, without a database or a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string

from monitor.api.problems import problem
from monitor.health import supervised

if TYPE_CHECKING:
    from collections.abc import Callable

RETRY_SECONDS = 3
# SQLSTATE classes of a server that goes away: lost connections, its shutdown or start, no room for us.
_AWAY = ("08", "57P", "53300")


class OutageMiddleware:
    """Answers for views that could not reach the depot."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return answer(request) if is_outage(error) else None


def is_outage(error: BaseException | None) -> bool:
    """Whether *error* says that the depot is away, rather than that it refused something."""
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(_AWAY)


def answer(request: HttpRequest) -> HttpResponse:
    """503 in the form in which it was asked: a problem for programs, a line for htmx, else a page."""
    if request.path.startswith("/api/"):
        response = problem(503, "depot_away", "the depot does not answer; try again in a few seconds")
    elif request.headers.get("HX-Request") == "true":
        # Into the banner, whoever asked: what a part showed stays where it is.
        headers = {"HX-Retarget": "#banner", "HX-Reswap": "innerHTML"}
        response = HttpResponse(render_to_string("parts/outage.html"), status=503, headers=headers)
    else:
        services = supervised()
        coming = any(service.state in {"starting", "restarting"} for service in services.values())
        context = {"services": services, "coming": coming, "retry_seconds": RETRY_SECONDS}
        response = HttpResponse(render_to_string("pages/outage.html", context), status=503)
    response["Retry-After"] = str(RETRY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
