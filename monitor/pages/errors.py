"""Answers to what no view answers: a problem for programs, a page for people."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from monitor.api.problems import problem
from monitor.pages import outage

if TYPE_CHECKING:
    from django.http import HttpRequest


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that Django itself refuses, for a host that is not ours, say."""
    if _is_program(request):
        return problem(HTTPStatus.BAD_REQUEST, "malformed", str(exception) or "it cannot be read")
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_program(request):
        return problem(HTTPStatus.NOT_FOUND, "not_found", f"there is no {request.path}")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """An error outside of views, in middleware say, or a bug of ours: without a database."""
    if outage.is_outage(sys.exc_info()[1]):
        return outage.answer(request)
    if _is_program(request):
        said = "that is an error of ours; it was written to the log of the web server"
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "our_error", said)
    return HttpResponse(render_to_string("500.html"), status=HTTPStatus.INTERNAL_SERVER_ERROR)


def _is_program(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")
