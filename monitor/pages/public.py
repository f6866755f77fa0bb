"""The public status page and its badges, without a login: sites and suites that are marked public.

The answers are the same for every visitor and kept for a minute, so that many readers cost no more than one.
"""

from __future__ import annotations

from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from monitor.accounts import throttle
from monitor.accounts.events import client_address
from monitor.charts.badge import badge as draw_badge
from monitor.overview.public_status import public_status
from monitor.pages.http.navigation import NavigationEntry

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT_SECONDS = 60
REQUESTS = throttle.FailureLimit("public request", 600)  # of a network, in a window
Arguments = ParamSpec("Arguments")


def limited(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponse],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponse]:
    """Refuse a network that asks too often; permit every cache to keep the answer for a minute."""

    @wraps(view)
    def counted(request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> HttpResponse:
        network = throttle.networks(client_address(request))[-1][1]
        try:
            throttle.begin(cache, [(REQUESTS, network)])
        except throttle.TooManyFailures as error:
            text = f"Too many requests from {network}: again in {error.retry_seconds} s.\n"
            headers = {"Retry-After": str(error.retry_seconds), "Cache-Control": "no-store"}
            status = HTTPStatus.TOO_MANY_REQUESTS
            return HttpResponse(text, content_type="text/plain", status=status, headers=headers)
        response = view(request, *args, **kwargs)
        response["Cache-Control"] = f"public, max-age={KEPT_SECONDS}"
        return response

    return require_safe(counted)


@limited
def page(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(_kept("page"))


@limited
def badge(_request: HttpRequest, noun: str, name: str) -> HttpResponse:
    """Draw the badge of a public site or suite; others do not exist for the reader."""
    drawn = _kept(f"{noun}/{name}")
    if not drawn:
        raise Http404
    return HttpResponse(drawn, content_type="image/svg+xml")


def _kept(key: str) -> str:
    """Return the answer *key* of the last minute; empty if there is none."""
    answers = cache.get("public-status")
    if answers is None:
        answers = _answers()
        cache.set("public-status", answers, KEPT_SECONDS)
    return str(answers.get(key, ""))


def _answers() -> dict[str, str]:
    now = timezone.now()
    status = public_status(now)
    # Rendered without the request: nothing of its session or user can get into what is kept.
    html: str = render_to_string("pages/public.html", {"status": status, "now": now})
    answers = {"page": html}
    answers |= {f"sites/{each.name}": draw_badge(each.title, each.state) for each in status.sites}
    answers |= {f"suites/{each.name}": draw_badge(each.title, each.state) for each in status.suites}
    return answers


entries = [NavigationEntry("Status", "Public status", "public")]
urlpatterns = [
    path("public/", page, name="public"),
    path("public/badges/sites/<slug:name>.svg", badge, {"noun": "sites"}, name="public-site-badge"),
    path("public/badges/suites/<slug:name>.svg", badge, {"noun": "suites"}, name="public-suite-badge"),
]
