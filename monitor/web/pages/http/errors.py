"""Error answers outside of views: problems under ``/api/``, pages elsewhere."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING

from django.contrib.auth.views import redirect_to_login
from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.exceptions import DisallowedHost
from django.shortcuts import render
from django.urls import reverse
from django.views import defaults

from monitor.depot.access.roles import takes_last_administrator
from monitor.web.api.http.problems import problem
from monitor.web.pages.http import outage, parts
from monitor.web.pages.http.access import NotAvailable

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses, for example because of its Host header.

    A page whose session ended while it was made leads to the login, as the next one would.
    """
    if isinstance(exception, SessionInterrupted) and not _is_api(request):
        return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("overview"))
    if _is_api(request):
        detail = str(exception) or "the request cannot be read"
        if isinstance(exception, DisallowedHost):  # Django's text names a setting that gridcast does not have
            detail = "Host: expected one of the hosts of this server (GRIDCAST_HOSTS)"
        return problem(HTTPStatus.BAD_REQUEST, "malformed", detail)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that the roles of the user do not permit, or for which the account lacks something."""
    context = {"exception": str(exception), "is_about_roles": not isinstance(exception, NotAvailable)}
    return render(request, "403.html", context, status=HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        return problem(HTTPStatus.NOT_FOUND, "not_found", f"there is no {request.path}")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a bug, or an error outside of views such as in middleware."""
    error = sys.exc_info()[1]
    if (answer := outage.of_database_error(request, error)) is not None:
        return answer
    if takes_last_administrator(error):
        return _no_administrator_left(request)
    if _is_api(request):
        detail = "internal error; the log of the web server has the details"
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "our_error", detail)
    return parts.failed_page(request)


def _no_administrator_left(request: HttpRequest) -> HttpResponse:
    """Answer a change that the database refused when it was committed, whatever made it."""
    detail = "nothing is changed: no active administrator would remain. Grant the role to another user first"
    if _is_api(request):
        return problem(HTTPStatus.CONFLICT, "conflict", detail)
    reason = f"{detail[0].upper()}{detail[1:]}."
    return render(request, "pages/conflict.html", {"reason": reason}, status=HTTPStatus.CONFLICT)


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")
