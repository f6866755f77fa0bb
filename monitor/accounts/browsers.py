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


class SessionMiddleware(sessions.SessionMiddleware):
    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if is_of_program(request) else super().__call__(request)


class AuthenticationMiddleware(auth.AuthenticationMiddleware):
    def __call__(self, request: HttpRequest) -> Any:
        if not is_of_program(request):
            return super().__call__(request)
        request.user = AnonymousUser()  # until the token is looked up
        return self.get_response(request)


class MessageMiddleware(messages.MessageMiddleware):
    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if is_of_program(request) else super().__call__(request)


class HtmxMiddleware(htmx.HtmxMiddleware):
    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if is_of_program(request) else super().__call__(request)
