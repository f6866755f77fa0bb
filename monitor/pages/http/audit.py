"""Write the audit record of requests: of pages, the API and the admin pages alike."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.utils import timezone

from monitor.access import audit
from monitor.access.audit import Action, Actor
from monitor.access.audit_trail import audit_trail, note
from monitor.access.denials import Denials
from monitor.api.http.client_address import client_address
from monitor.log import without_ping_keys
from monitor.models import ReporterKey
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.token import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


class AuditMiddleware:
    """Write an event for each request that changed something, was denied, or ended with an error of ours.

    Measured data are no changes: reports, records of agents and job outcomes say themselves who sent them.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._denials = Denials()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with audit_trail() as trail:
            response = self.get_response(request)
        now = timezone.now()
        self._denials.flush(now)
        outcome = _outcome(request, response.status_code, has_changes=bool(trail.changes))
        if outcome is not None:
            action = Action(
                channel=_channel(request),
                action=_action(request),
                target=without_ping_keys(request.path),
                outcome=outcome,
                status=response.status_code,
            )
            if outcome == AuditOutcome.DENIED:
                self._denials.add(_actor(request), action, now)
            else:
                audit.write(_actor(request), action, now, trail)
        return response


def _outcome(request: HttpRequest, status: int, *, has_changes: bool) -> AuditOutcome | None:
    """Return how to record the request; None: not at all."""
    if status in {403, 429} or hasattr(request, "failed_login"):
        return AuditOutcome.DENIED
    if status == 401:  # without credentials, it was no attempt
        return AuditOutcome.DENIED if "Authorization" in request.headers else None
    if has_changes:
        return AuditOutcome.DONE if status < 500 else AuditOutcome.FAILED
    if request.method in SAFE or getattr(request, "is_no_change", False) or _is_measurement(request):
        return None
    if status == 500:
        return AuditOutcome.FAILED
    return AuditOutcome.DONE if status < 400 and request.user.is_authenticated else None


def _is_measurement(request: HttpRequest) -> bool:
    return isinstance(getattr(request, "auth", None), Sender | ReporterKey)


def _actor(request: HttpRequest) -> Actor:
    auth, session = getattr(request, "auth", None), ""
    user = getattr(request, "failed_login", "") or getattr(request, "logged_out", "")
    if isinstance(auth, Sender):
        user = auth.username
    elif isinstance(auth, ReporterKey):
        user = f"reporter {auth.reporter.name}"
    elif not user and request.user.is_authenticated:
        user = request.user.get_username()
        if not hasattr(request, "api_token") and request.session.session_key:
            session = hashlib.sha256(request.session.session_key.encode()).hexdigest()[:8]
    return Actor(user, getattr(request, "api_token", ""), session, client_address(request))


def _channel(request: HttpRequest) -> str:
    if request.path.startswith("/api/"):
        return AuditChannel.API
    return AuditChannel.ADMIN if request.path.startswith("/admin/") else AuditChannel.PAGE


def _action(request: HttpRequest) -> str:
    match = request.resolver_match
    return f"{request.method} /{match.route}" if match else str(request.method)


@receiver(user_logged_in)
def _note_login(user: User, **_: Any) -> None:
    note("session", user.get_username(), after="logged in")


@receiver(user_logged_out)
def _note_logout(request: HttpRequest | None, user: User | None, **_: Any) -> None:
    if user is not None:
        note("session", user.get_username(), after="logged out")
        request.logged_out = user.get_username()  # type: ignore[union-attr]


@receiver(user_login_failed)
def _mark_failed_login(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    if request is not None:
        name = credentials.get("username") or credentials.get("email") or ""
        request.failed_login = str(name)[:150]  # type: ignore[attr-defined]
