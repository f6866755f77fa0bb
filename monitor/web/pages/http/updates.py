"""Updates of open pages: htmx asks for a part of the page, at most once in ten seconds.

A page is ``live``: its part is answered with an ETag, which is the version of the depot. While it is the
same, the answer is 304 and nothing is computed. If the depot has changed but the page has not, the page
answers 204 (``is_current``). The banner comes along in the same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import msgspec
from django.http import HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.utils import timezone

from monitor import health
from monitor.web.pages.http.access import wants_part
from monitor.web.pages.http.parts import compute, has_failed
from monitor.web.status.version import depot_version

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponseBase

Arguments = ParamSpec("Arguments")
_ENCODER = msgspec.msgpack.Encoder(enc_hook=repr, order="deterministic")


def live(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
    """Answer requests for a part of the page with its version and the banner; without a change, with 304.

    The version is read before the content: a change between the two is shown by the next update. An answer
    with a failed part has neither a version nor the digest of its content: the next update computes it again.
    """

    @wraps(view)
    def versioned(
        request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> HttpResponseBase:
        if not wants_part(request):
            return _with_digest(request, view(request, *args, **kwargs))
        now = timezone.now()
        problems = compute(request, "banner", lambda: health.problems(now))
        version, banner = _version(request, now), health.components(problems or [])
        shown = request.headers.get("If-None-Match", "").removeprefix("W/").strip('"')
        if shown == f"{version}-{banner}":
            return HttpResponseNotModified()
        response = _with_digest(request, view(request, *args, **kwargs))
        if response.status_code == 204 and shown and shown.partition("-")[2] != banner:
            response = HttpResponse(headers={"HX-Reswap": "none"})  # only the banner
        if response.status_code == 200 and isinstance(response, HttpResponse):
            service = {"service_problems": problems}
            response.write(render_to_string("parts/live_banner.html", service, request))
        response["ETag"] = f'"{"" if has_failed(request) else version}-{banner}"'
        return response

    return versioned


def digest_of(content: object) -> str:
    """Return a digest of *content*, which must not include ages."""
    return hashlib.blake2s(_ENCODER.encode(content), digest_size=8).hexdigest()


def is_current(request: HttpRequest, digest: str) -> bool:
    """Return whether *request* is an update of a page that already shows the content with this *digest*."""
    request.digest = digest  # type: ignore[attr-defined]
    return wants_part(request) and request.GET.get("seen") == digest and not has_failed(request)


def _with_digest(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return *response*; if a part failed, without the digest in the address of its updates."""
    if has_failed(request) and isinstance(response, HttpResponse) and hasattr(request, "digest"):
        response.content = response.content.replace(f"seen={request.digest}".encode(), b"seen=")
    return response


def _version(request: HttpRequest, now: datetime) -> str:
    return digest_of([request.path, sorted(request.GET.items()), request.user.pk, depot_version(now)])
