"""What only browsers need: static files, sessions, logins by session, messages. Requests of programs skip it.

A request of a program carries an API token and no cookie, so there is no session to open. Preparing one all
the same would take a tenth of the time of a short answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.middleware import gzip
from django_htmx import middleware as htmx
from whitenoise import middleware as whitenoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

_API = "/api/v1/"


def is_of_program(request: HttpRequest) -> bool:
    """Return whether *request*, to the API, has a token and neither a cookie nor a user named by a proxy."""
    sent = request.META
    return (
        "HTTP_AUTHORIZATION" in sent
        and not sent.get("HTTP_COOKIE")
        and request.path_info.startswith("/api/")
        and settings.GRIDCAST_REMOTE_USER is None
    )


class ForBrowsers:
    """A middleware that requests of programs skip, together with all such middlewares that follow it."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)  # type: ignore[call-arg]
        # Django wraps each middleware in a function, which has the attributes of the middleware.
        self.skip_to: Callable[[HttpRequest], Any] = getattr(get_response, "skip_to", get_response)

    def __call__(self, request: HttpRequest) -> Any:
        if is_of_program(request):
            return self.skip_to(request)
        return super().__call__(request)  # type: ignore[misc]


class WhiteNoiseMiddleware(ForBrowsers, whitenoise.WhiteNoiseMiddleware):  # type: ignore[misc]  # untyped
    def __call__(self, request: HttpRequest) -> Any:
        request.user = AnonymousUser()  # of a program, until its token is looked up
        return super().__call__(request)


class PageCompressionMiddleware(ForBrowsers, gzip.GZipMiddleware):
    """Compress all answers but those of the API, to which random padding against BREACH would be foreign."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith(_API):
            return response
        return super().process_response(request, response)


class SessionMiddleware(ForBrowsers, sessions.SessionMiddleware):
    pass


class MessageMiddleware(ForBrowsers, messages.MessageMiddleware):
    pass


class HtmxMiddleware(ForBrowsers, htmx.HtmxMiddleware):
    pass
