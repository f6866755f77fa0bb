"""Users that a proxy has authenticated: it names them in a header of each request."""

from __future__ import annotations

import logging
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

from monitor.core.log import OncePer
from monitor.depot.access import audit, roles
from monitor.depot.access.audit import Action, Actor
from monitor.depot.access.audit_trail import audit_trail, note
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.role import acting
from monitor.operations.web_server.client_address import client_address, peer_of
from monitor.operations.web_server.proxies import VARIABLE
from monitor.web.accounts import group_roles, users
from monitor.web.accounts.environment import REMOTE_USER_PROXIES
from monitor.web.accounts.users import NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

    from monitor.web.accounts.environment import RemoteUser

logger = logging.getLogger(__name__)

MOST_SHOWN = 200  # characters of a name, in the log
# The attribute of a request whose header named a user in vain, and that goes on by its session or token.
REFUSED_NAME = "refused_remote_user"


class RemoteUserRefused(Exception):
    """The name that a proxy sent opens no account.

    Attributes:
        reason: a clause, for the log and the page; a *detail* of it is in the log only.
        remedy: what helps, a sentence.
        has_account: whether there is an account of the name.
    """

    def __init__(self, reason: str, remedy: str, *, detail: str = "", has_account: bool = False) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.remedy, self.has_account = reason, remedy, has_account


class RemoteUserMiddleware:
    """Take the user of a request from a header, if the request comes from a proxy that may send it.

    ``ProxyMiddleware`` has removed the header of any other client, which is logged here. The user holds for
    this one request: there is no session that could outlive the one at the proxy, and a session of another
    user is ignored.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if settings.GRIDCAST_REMOTE_USER is None:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.configured: RemoteUser = settings.GRIDCAST_REMOTE_USER
        self._lines = OncePer()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if (unproven := getattr(request, "unproven_remote_user", None)) is not None:
            self._log_untrusted(request, unproven)
            return self.get_response(request)
        name = request.META.pop(self.configured.key, None)
        if name is None:
            return self.get_response(request)
        request.is_named_by_proxy = True  # type: ignore[attr-defined]  # the pages then offer no logout
        try:
            request.user = self._user(request, name)
        except RemoteUserRefused as refusal:
            request.user = AnonymousUser()
            return self._refused(request, name, refusal)
        return self.get_response(request)

    def _refused(self, request: HttpRequest, name: str, refusal: RemoteUserRefused) -> HttpResponseBase:
        logger.warning("remote user refused: %r: %s", name[:MOST_SHOWN], refusal)
        if request.path.startswith("/api/"):
            setattr(request, REFUSED_NAME, name)
            return self.get_response(request)
        user_login_failed.send(sender=__name__, credentials={"username": name}, request=request)
        context = {"reason": "remote_user", "name": name, "refusal": refusal}
        return render(request, "pages/login_refused.html", context, status=HTTPStatus.FORBIDDEN)

    def _user(self, request: HttpRequest, name: str) -> User:
        """Return the user called *name*; an unknown one gets an account, if a role is configured for it.

        Raises:
            RemoteUserRefused: there is no such account, or it opens nothing.
        """
        if not NAME.fullmatch(name):
            raise RemoteUserRefused(
                "this is no user name: expected 1 to 150 ASCII letters, digits and @.+-_",
                "The administrator of the proxy can let it send such a name.",
            )
        user = User.objects.filter(username=name).first() or self._new(request, name)
        if not user.is_active:
            remedy = f"An administrator enables it: manage.py account enable {name}."
            raise RemoteUserRefused("the account is disabled", remedy, has_account=True)
        if acting(user, None) is None:
            raise RemoteUserRefused(
                "no role is granted to the account here, and a proxy brings none of the identity provider",
                f"An administrator grants one: manage.py access grant {name} ROLE.",
                has_account=True,
            )
        return user

    @transaction.atomic
    def _new(self, request: HttpRequest, name: str) -> User:
        if self.configured.role:
            users.lock_names()
        alike = users.find_alike(name)
        if alike is not None and alike.get_username() == name:
            return alike  # a request at the same time has made it
        if alike is not None:
            raise RemoteUserRefused(
                "gridcast has no account of this name, only one that looks alike",
                "Names are never changed here. If the account is yours, the administrator of the proxy can"
                " let it send that spelling; if not, an administrator of gridcast creates yours, by"
                f" manage.py account create {name} --no-password --role ROLE.",
                detail=repr(alike.get_username()),  # a stranger must not learn which accounts there are
            )
        if not self.configured.role:
            raise RemoteUserRefused(
                "gridcast has no account of this name",
                "An administrator creates it under Users and roles, or by manage.py account create"
                f" {name} --no-password --role ROLE.",
            )
        return self._made(request, name)

    def _made(self, request: HttpRequest, name: str) -> User:
        """Return the new account *name*; the audit record has it, whatever becomes of the request."""
        with audit_trail() as trail:
            user = User.objects.create(username=name, password=make_password(None))
            note("account", name, after="made, as a proxy named it")
            for role in group_roles.present_roles([self.configured.role]):
                roles.grant(user, roles.parse_grant(role))
        channel = AuditChannel.API if request.path.startswith("/api/") else AuditChannel.PAGE
        action = Action(channel, "account of a remote user", request.path, AuditOutcome.DONE, 0)
        audit.record(Actor(name, address=client_address(request)), action, timezone.now(), trail)
        logger.info("remote user %r: account made with the role %s", name, self.configured.role)
        return user

    def _log_untrusted(self, request: HttpRequest, name: str) -> None:
        setattr(request, REFUSED_NAME, name)
        if self._lines.is_due():
            logger.warning(
                "%s ignored: %s and %s do not both have %s, which named %r",
                self.configured.header,
                VARIABLE,
                REMOTE_USER_PROXIES,
                peer_of(request) or "a Unix socket",
                name[:MOST_SHOWN],
            )
