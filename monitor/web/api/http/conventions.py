"""What HTTP asks of every path: HEAD and OPTIONS, entity tags, headers of caches and limits, compression."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from monitor.web.api.http.compress import compress
from monitor.web.api.http.conditional import is_known, not_modified, tag_of_body
from monitor.web.api.http.problems import METHOD_NOT_ALLOWED, not_allowed, too_many_requests
from monitor.web.api.http.rate_limit import count_unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    View = Callable[..., HttpResponseBase]

_VARY = ("Authorization", "Cookie", "Accept-Encoding")
_OK, _NO_CONTENT, _NOT_MODIFIED, _UNAUTHORISED = 200, 204, 304, 401


def conventional(view: View) -> View:
    """Return the *view* of a path, changed to follow the conventions of HTTP for all of its methods."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        asked = request.method
        if asked == "HEAD":
            request.method = "GET"
        try:
            response = view(request, *args, **kwargs)
        finally:
            request.method = asked
        if response.status_code == METHOD_NOT_ALLOWED:
            return _other_method(request, response["Allow"])
        response = _limited(request, response)
        if asked in {"GET", "HEAD"}:
            response = _conditional(request, response)
        _set_headers(request, response)
        compress(request, response)
        return _without_body(response) if asked == "HEAD" else response

    return answer


def _other_method(request: HttpRequest, allow: str) -> HttpResponse:
    """Answer OPTIONS, or refuse the method; *allow* has the methods of the path's operations."""
    methods = {*allow.split(", "), "OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    if request.method != "OPTIONS":
        return not_allowed(request, methods)
    response = HttpResponse(status=_NO_CONTENT)
    response["Allow"] = ", ".join(sorted(methods))
    return response


def _limited(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return *response* with the rate limit of its caller, or a refusal of a caller without a login."""
    standing = getattr(request, "rate", None)
    if response.status_code == _UNAUTHORISED:
        standing = count_unauthenticated(request)
        if standing.is_exceeded:
            response = too_many_requests(standing.reset_seconds)
    if standing is not None:
        for name, value in standing.headers().items():
            response[name] = value
    return response


def _conditional(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return *response* with its entity tag, or 304 if the client has it."""
    if response.status_code != _OK or not isinstance(response, HttpResponse):
        return response
    if "ETag" not in response:
        response["ETag"] = tag_of_body(response.content, ends_now="end" not in request.GET)
    if not is_known(request, response["ETag"]):
        return response
    unmodified = not_modified(response["ETag"])
    for name in ("RateLimit", "RateLimit-Policy"):
        if name in response:
            unmodified[name] = response[name]
    return unmodified


def _set_headers(request: HttpRequest, response: HttpResponseBase) -> None:
    if preference := getattr(request, "preference", ""):
        response["Preference-Applied"] = preference
    is_reusable = request.method in {"GET", "HEAD"} and response.status_code in {_OK, _NOT_MODIFIED}
    response["Cache-Control"] = "private, no-cache" if is_reusable else "no-store"
    if response.has_header("Vary"):
        patch_vary_headers(response, _VARY)
    else:
        response["Vary"] = ", ".join(_VARY)


def _without_body(response: HttpResponseBase) -> HttpResponse:
    """Return *response* without its body; the length of the body stays."""
    head = HttpResponse(status=response.status_code, headers=response.headers)
    if isinstance(response, HttpResponse):  # a streamed body has not begun, and has no length
        head["Content-Length"] = str(len(response.content))
    return head
