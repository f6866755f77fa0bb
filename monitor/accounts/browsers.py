"""What only browsers need: sessions, logins by session, messages. Requests of programs skip it.

A request of a program carries an API token and no cookie, so there is no session to open. Preparing one all
the same would take a tenth of the time of a short answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django_htmx import middleware as htmx

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest


def is_of_program(request: HttpRequest) -> bool:
    """Return whether *request*, to the API, has a token and neither a cookie nor a user named by a proxy."""
    sent = request.META
    return (
        "HTTP_AUTHORIZATION" in sent
        and not sent.get("HTTP_COOKIE")
        and request.path_info.startswith("/api/")
        and settings.GRIDCAST_REMOTE_USER is None
    )


class _ForBrowsers:
    """A middleware that requests of programs skip."""

    get_response: Callable[[HttpRequest], Any]

    def __call__(self, request: HttpRequest) -> Any:
        handle = self.get_response if is_of_program(request) else super().__call__  # type: ignore[misc]
        return handle(request)


class SessionMiddleware(_ForBrowsers, sessions.SessionMiddleware):
    pass


class AuthenticationMiddleware(_ForBrowsers, auth.AuthenticationMiddleware):
    def __call__(self, request: HttpRequest) -> Any:
        request.user = AnonymousUser()  # of a program, until its token is looked up
        return super().__call__(request)


class MessageMiddleware(_ForBrowsers, messages.MessageMiddleware):
    pass


class HtmxMiddleware(_ForBrowsers, htmx.HtmxMiddleware):
    pass
