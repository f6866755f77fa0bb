"""Write the audit record of requests: of pages, the API and the admin pages alike."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import Error, transaction
from django.dispatch import receiver
from django.utils import timezone

from monitor.core.log import without_ping_keys
from monitor.depot.access import audit
from monitor.depot.access.audit import Action, Actor
from monitor.depot.access.audit_trail import audit_trail, note
from monitor.depot.access.denials import Denials
from monitor.models import ReporterKey
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.token import Sender
from monitor.operations.web_server.client_address import client_address
from monitor.web.accounts.remote_user import REFUSED_NAME
from monitor.web.pages.http import outage

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
# The provider sends the user back by GET.
PROVIDER_LOGIN = "login/sso/callback/"
# These pages begin the change themselves: no transaction is open while the provider is asked.
ASKS_PROVIDER = frozenset(
    {PROVIDER_LOGIN, "login/sso/backchannel-logout/", "account/connect/", "account/confirm/provider/"}
)
# A login that is refused keeps what it has used up, such as a code or the challenge of a passkey, and takes
# away the roles that the user has lost at the provider.
LOGINS = frozenset({PROVIDER_LOGIN, "login/", "login/passkey/", "login/second-factor/"})
REMOTE_LOGIN = "login of a remote user"
# Not recorded: measured data, which say themselves who sent them, and a question that is sent as POST. An
# invalid code of an agent is counted although its request is denied.
NOT_RECORDED = frozenset(
    f"api/v1/{route}"
    for route in (
        "forecasts/rank",
        "forecasts/<forecast>/outcome",
        "forecasts/outcomes",
        "ping/<key>",
        "ping/<key>/<signal>",
        "reporters/enrol",
        "reporters/<reporter>/exchange",
        "reporters/<reporter>/records",
        "reports",
        "series/<series>/ping",
        "series/<series>/ping/<signal>",
    )
)


class AuditMiddleware:
    """Write an event for each request that changed something, was denied, or ended with an error of ours.

    A change and its event are one transaction: without the event, there is no change. A request that is
    refused changes nothing. Where a name in a header is refused and the request goes on, the denial is one
    event more, and takes none away.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._denials = Denials()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with audit_trail() as trail, contextlib.ExitStack() as change:
            request.change = change  # type: ignore[attr-defined]
            response = self.get_response(request)
            now, status = timezone.now(), response.status_code
            if _has_failed(request, status):
                if _is_recorded(request):
                    transaction.set_rollback(True)
            elif trail.changes or (_is_recorded(request) and _is_carried_out(request)):
                audit.record(_actor(request), _action(request, status, AuditOutcome.DONE), now, trail)
        self._denials.flush(now)
        if hasattr(request, REFUSED_NAME):
            self._denials.add(*_refused_name(request, status), now)
        if _is_denied(request, status):
            self._denials.add(_denied_actor(request), _action(request, status, AuditOutcome.DENIED), now)
        elif status == HTTPStatus.INTERNAL_SERVER_ERROR and _is_recorded(request):
            audit.write(_actor(request), _action(request, status, AuditOutcome.FAILED), now)
        return response

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Begin the transaction of a request that may change something."""
        if request.method in SAFE or _route(request) in NOT_RECORDED | ASKS_PROVIDER:
            return None
        try:
            begin_change(request)
        except Error as error:
            if outage.is_outage(error):
                return outage.answer(request)
            raise
        return None


def begin_change(request: HttpRequest) -> None:
    """Begin the transaction that holds what *request* changes and its event."""
    request.change.enter_context(transaction.atomic())  # type: ignore[attr-defined]
    request.is_recorded = True  # type: ignore[attr-defined]


def _route(request: HttpRequest) -> str:
    return request.resolver_match.route if request.resolver_match else ""


def _has_failed(request: HttpRequest, status: int) -> bool:
    is_refused_login = status < HTTPStatus.INTERNAL_SERVER_ERROR and _route(request) in LOGINS
    return status >= HTTPStatus.BAD_REQUEST and not is_refused_login


def _is_recorded(request: HttpRequest) -> bool:
    return hasattr(request, "is_recorded")


def _is_carried_out(request: HttpRequest) -> bool:
    """Return whether a user sent the request, and was neither refused nor asked to confirm first.

    A login, confirmation or connection that is refused says so as a failed login.
    """
    is_refused = hasattr(request, "failed_login") or hasattr(request, "is_unconfirmed")
    return request.user.is_authenticated and not is_refused


def _is_denied(request: HttpRequest, status: int) -> bool:
    """Return whether the request was denied; without credentials, it was no attempt."""
    if status == HTTPStatus.UNAUTHORIZED and "Authorization" in request.headers:
        return True
    denials = {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
    return status in denials or hasattr(request, "failed_login")


def _action(request: HttpRequest, status: int, outcome: AuditOutcome) -> Action:
    name = f"{request.method} /{_route(request)}" if request.resolver_match else str(request.method)
    return Action(_channel(request), name, without_ping_keys(request.path), outcome, status)


def _refused_name(request: HttpRequest, status: int) -> tuple[Actor, Action]:
    """Return the denial of the name in a header, with the session or token by which the request went on."""
    actor = replace(_actor(request), user=getattr(request, REFUSED_NAME))
    target = without_ping_keys(request.path)
    return actor, Action(_channel(request), REMOTE_LOGIN, target, AuditOutcome.DENIED, status)


def _denied_actor(request: HttpRequest) -> Actor:
    """Return the actor; of a failed login, with the name that was given."""
    name = getattr(request, "failed_login", "")
    return replace(_actor(request), user=name) if name else _actor(request)


def _actor(request: HttpRequest) -> Actor:
    """Return the user; of a request that leaves none, the one it has logged out, else the one it names.

    A login in the browser of another user logs that one out, and is an act of the user that logs in.
    """
    auth, session = getattr(request, "auth", None), ""
    if isinstance(auth, Sender):
        user = auth.username
    elif isinstance(auth, ReporterKey):
        user = f"reporter {auth.reporter.name}"
    elif request.user.is_authenticated:
        user = request.user.get_username()
        if not hasattr(request, "api_token") and request.session.session_key:
            session = hashlib.sha256(request.session.session_key.encode()).hexdigest()[:8]
    else:
        user = getattr(request, "logged_out", "") or getattr(request, "failed_login", "")
    return Actor(user, getattr(request, "api_token", ""), session, client_address(request))


def _channel(request: HttpRequest) -> str:
    if request.path.startswith("/api/"):
        return AuditChannel.API
    return AuditChannel.ADMIN if request.path.startswith("/admin/") else AuditChannel.PAGE


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
