"""The public status page and its badges, without a login: sites and suites that are marked public.

The answers are the same for every visitor and kept for a minute, so that many readers cost no more than one.
Answers with a part that could not be computed are kept for seconds only. One request renews them, and others
get the former answers meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from monitor.core.log import request_id
from monitor.operations.web_server.client_address import client_address
from monitor.web.accounts import throttle
from monitor.web.charts.badge import badge as draw_badge
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import Rendering, compute, has_failed
from monitor.web.status.public_status import PublicSite, PublicSuite, public_status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEPT_SECONDS, FAILED_SECONDS = 60, 5
CACHED, RENEWING = "public-answers", "public-answers-renewing"
MOST_RENEWING_SECONDS = 30  # then another request renews them: the first may have been killed
NOT_COMPUTED = "not computed"  # the state on the badge of a site whose state is not known to us
REQUESTS = throttle.FailureLimit("public request", 600)  # of a network, in a window
Arguments = ParamSpec("Arguments")
_renewal = threading.Lock()


@dataclass(frozen=True)
class Answers:
    """The page, and the badges by noun and name; *seconds*: for how long caches may keep them."""

    page: str
    badges: Mapping[str, str] = field(default_factory=dict)
    seconds: int = KEPT_SECONDS


def limited(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponse],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponse]:
    """Refuse a network that asks too often."""

    @wraps(view)
    def counted(request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> HttpResponse:
        network = throttle.networks(client_address(request))[-1][1]
        try:
            throttle.limits().count(REQUESTS, network)
        except throttle.TooManyFailures as error:
            text = f"Too many requests from {network}: again in {error.retry_seconds} s.\n"
            headers = {"Retry-After": str(error.retry_seconds), "Cache-Control": "no-store"}
            status = HTTPStatus.TOO_MANY_REQUESTS
            return HttpResponse(text, content_type="text/plain", status=status, headers=headers)
        return view(request, *args, **kwargs)

    return require_safe(counted)


@limited
def page(_request: HttpRequest) -> HttpResponse:
    answers = _kept()
    return _for_caches(HttpResponse(answers.page), answers)


@limited
def badge(_request: HttpRequest, noun: str, name: str) -> HttpResponse:
    """Draw the badge of a public site or suite; others do not exist for the reader.

    While it could not be computed which are public, a badge that is missing is unavailable.
    """
    answers = _kept()
    drawn = answers.badges.get(f"{noun}/{name}")
    if drawn:
        return _for_caches(HttpResponse(drawn, content_type="image/svg+xml"), answers)
    if answers.seconds == KEPT_SECONDS:
        raise Http404
    return _for_caches(HttpResponse(status=HTTPStatus.SERVICE_UNAVAILABLE), answers)


def _for_caches(response: HttpResponse, answers: Answers) -> HttpResponse:
    response["Cache-Control"] = f"public, max-age={answers.seconds}"
    return response


def _kept() -> Answers:
    """Return the answers of the last minute; of the last seconds, if a part of them could not be computed.

    Later answers are for requests that come while another one renews them.
    """
    kept = cache.get(CACHED)
    if kept is not None and (
        kept["until"] > time.time() or not cache.add(RENEWING, 1, MOST_RENEWING_SECONDS)
    ):
        return Answers(**kept["answers"])
    try:
        return _renewed()
    finally:
        cache.delete(RENEWING)


def _renewed() -> Answers:
    """Return new answers; those of another request, if this process has made some meanwhile."""
    with _renewal:
        kept = cache.get(CACHED)
        if kept is not None and kept["until"] > time.time():
            return Answers(**kept["answers"])
        answers = _answers()
        entry = {"answers": asdict(answers), "until": time.time() + answers.seconds}  # the cache keeps JSON
        cache.set(CACHED, entry, answers.seconds + KEPT_SECONDS)
    return answers


def _answers() -> Answers:
    now, rendering = timezone.now(), Rendering("public")
    status = public_status(now, partial(compute, rendering))
    # Rendered without the request: nothing of its session or user can get into what is kept.
    context = {"status": status, "now": now, "rendering": rendering, "request_id": request_id.get()}
    html = render_to_string("pages/public.html", context)

    def badges(noun: str, shown: Sequence[PublicSite | PublicSuite]) -> dict[str, str]:
        return {f"{noun}/{each.name}": draw_badge(each.title, each.state or NOT_COMPUTED) for each in shown}

    drawn = badges("sites", status.sites or ()) | badges("suites", status.suites or ())
    return Answers(html, drawn, FAILED_SECONDS if has_failed(rendering) else KEPT_SECONDS)


entries = [NavigationEntry("Status", "Public status", "public")]
urlpatterns = [
    path("public/", page, name="public"),
    path("public/badges/sites/<slug:name>.svg", badge, {"noun": "sites"}, name="public-site-badge"),
    path("public/badges/suites/<slug:name>.svg", badge, {"noun": "suites"}, name="public-suite-badge"),
]
