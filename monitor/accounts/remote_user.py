"""Users that a proxy has authenticated: it names them in a header of each request."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import MiddlewareNotUsed
from django.db import transaction
from django.shortcuts import render
from django.utils import timezone

from monitor.access import audit, roles
from monitor.access.audit import Action, Actor
from monitor.access.audit_trail import audit_trail, note
from monitor.accounts import group_roles
from monitor.accounts.events import client_address
from monitor.accounts.users import NAME
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.role import acting
from monitor.networks import is_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

    from monitor.accounts.environment import RemoteUser

logger = logging.getLogger(__name__)

LOG_SECONDS = 60.0


class RemoteUserMiddleware:
    """Take the user of a request from a header, if the request comes from a proxy that may send it.

    The header of any other client is ignored and logged. The user holds for this one request: there is no
    session that could outlive the one at the proxy, and a session of another user is ignored.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if settings.GRIDCAST_REMOTE_USER is None:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.configured: RemoteUser = settings.GRIDCAST_REMOTE_USER
        self.key = f"HTTP_{self.configured.header.upper().replace('-', '_')}"
        self._log_at = 0.0

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        name = request.META.pop(self.key, None)
        if name is None:
            return self.get_response(request)
        if not self._is_trusted(request):
            self._log_untrusted(request, name)
            return self.get_response(request)
        user = self._user(request, name)
        if user is None:
            user_login_failed.send(sender=__name__, credentials={"username": name}, request=request)
        request.user = user or AnonymousUser()
        request.is_named_by_proxy = True  # type: ignore[attr-defined]  # the pages then offer no logout
        if user is None and not request.path.startswith("/api/"):
            return render(
                request,
                "pages/login_refused.html",
                {"reason": "unknown_remote_user", "name": name},
                status=HTTPStatus.FORBIDDEN,
            )
        return self.get_response(request)

    def _is_trusted(self, request: HttpRequest) -> bool:
        """Return whether the connection comes from a proxy; what ``X-Forwarded-For`` says is no matter."""
        return is_within(str(request.META.get("REMOTE_ADDR", "")), self.configured.networks)

    def _user(self, request: HttpRequest, name: str) -> User | None:
        if not NAME.fullmatch(name):
            logger.warning("remote user refused: %r is no user name", name)
            return None
        user = User.objects.filter(username=name).first()
        if user is None and self.configured.role and not User.objects.filter(username__iexact=name).exists():
            user = self._made(request, name)
        if user is None or not user.is_active:
            logger.warning("remote user refused: %r has no account, it is disabled, or a name is alike", name)
            return None
        if acting(user, None) is None:
            logger.warning("remote user refused: %r has no role granted here", name)
            return None
        return user

    def _made(self, request: HttpRequest, name: str) -> User:
        """Return the new account *name*; the audit record has it, whatever becomes of the request."""
        with transaction.atomic(), audit_trail() as trail:
            user, is_new = User.objects.get_or_create(
                username=name, defaults={"password": make_password(None)}
            )
            if is_new:  # else a request at the same time has made it
                note("account", name, after="made, as a proxy named it")
                for role in group_roles.present_roles([self.configured.role]):
                    roles.grant(user, roles.parse_grant(role))
                channel = AuditChannel.API if request.path.startswith("/api/") else AuditChannel.PAGE
                action = Action(channel, "account of a remote user", request.path, AuditOutcome.DONE, 0)
                actor = Actor(name, address=client_address(request))
                audit.record(actor, action, timezone.now(), trail)
                logger.info("remote user %r: account made with the role %s", name, self.configured.role)
        return user

    def _log_untrusted(self, request: HttpRequest, name: str) -> None:
        user_login_failed.send(sender=__name__, credentials={"username": name}, request=request)
        now = time.monotonic()
        if now >= self._log_at:  # one line a minute
            self._log_at = now + LOG_SECONDS
            peer = request.META.get("REMOTE_ADDR", "")
            logger.warning(
                "%s ignored: %s is none of GRIDCAST_REMOTE_USER_PROXIES, and named %r",
                self.configured.header,
                peer,
                name,
            )
