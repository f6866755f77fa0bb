"""The metrics of the grid and of the service, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from monitor.core.networks import is_within
from monitor.models.role import reads_measurements
from monitor.operations.web_server.client_address import client_address
from monitor.web.api.http.auth import TokenAuth
from monitor.web.api.http.problems import Refused, of_refused
from monitor.web.metrics.definitions import Group
from monitor.web.metrics.exposition import ScrapesBusy, expose
from monitor.web.metrics.negotiation import preferred_format
from monitor.web.metrics.scope import ScrapeRequest
from monitor.web.metrics.text_format import decompressed
from monitor.web.pages.http.read_form import accepts_long_query

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

RETRY_SECONDS = 5
_PARAMETERS = ("collect[]", "suite", "site")


@accepts_long_query
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer in OpenMetrics or in Prometheus' text format, as the header Accept prefers."""
    try:
        user = _caller(request)
        if user is not None and not reads_measurements(user):
            raise Refused(
                403, "not_allowed", "the role scheduler reads forecasts, and nothing that is measured"
            )
        return _answer(request, _scrape_request(request, user))
    except Refused as error:
        return of_refused(error)


def _answer(request: HttpRequest, scrape: ScrapeRequest) -> HttpResponse:
    wanted = preferred_format(request.headers.get("Accept", ""))
    try:
        body = expose(scrape, wanted.media_type)
    except ScrapesBusy:
        detail = "other scrapes are being answered: scrape less often, or fewer series"
        raise Refused(503, "busy", detail, retry_seconds=RETRY_SECONDS) from None
    headers = {
        "Content-Type": wanted.content_type,
        "Cache-Control": "private, no-store",
        "Vary": "Accept, Accept-Encoding, Authorization, Cookie",
    }
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return HttpResponse(decompressed(body), headers=headers)
    return HttpResponse(body, headers={**headers, "Content-Encoding": "gzip"})


def _caller(request: HttpRequest) -> AbstractBaseUser | AnonymousUser | None:
    """Return the user of the token or the session; None for a host that the settings allow.

    Raises:
        Refused: there is none of them.
    """
    if "Authorization" in request.headers:
        if TokenAuth()(request) is None:
            raise _unauthenticated()
        return request.user
    if _is_allowed(client_address(request)):
        return None
    if not request.user.is_authenticated:
        raise _unauthenticated()
    return request.user


def _unauthenticated() -> Refused:
    detail = (
        "send a token with the scope read: Authorization: Bearer gcast_..., or name the address of this host"
    )
    return Refused(401, "not_authenticated", f"{detail} in GRIDCAST_METRICS_ALLOW")


def _is_allowed(address: str) -> bool:
    return is_within(address, settings.GRIDCAST_METRICS_ALLOW)


def _scrape_request(request: HttpRequest, user: AbstractBaseUser | AnonymousUser | None) -> ScrapeRequest:
    wanted = request.GET.getlist("collect[]")
    has_nul = "\0" in "".join(value for name in request.GET for value in request.GET.getlist(name))
    if has_nul or not set(request.GET) <= set(_PARAMETERS) or not set(wanted) <= set(Group):
        expected = f"collect[] ({', '.join(Group)}), suite and site"
        raise Refused(
            422, "invalid", f"expected the parameters {expected}, got {request.GET.urlencode()[:200]}"
        )
    suites, sites = (frozenset(request.GET.getlist(name)) for name in ("suite", "site"))
    return ScrapeRequest(user, frozenset(map(Group, wanted)) or frozenset(Group), suites, sites)


urlpatterns = [path("metrics", metrics, name="metrics")]
