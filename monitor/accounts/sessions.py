"""The sessions of users: listed, ended, and deleted when they have expired."""

from __future__ import annotations

import time
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth import middleware as auth
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from monitor.accounts.browsers import ForBrowsers
from monitor.models.role import act_as, acting, is_admitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import AbstractBaseUser
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponseBase

MOST_SESSIONS = 50  # of one user
WRITE_SECONDS = 300.0
_LISTED = "gridcast_listed"  # in a session that began with a login
IDENTITY_KEY = "gridcast_identity"  # by which the session acts; missing: by what was granted here
_MOST_NOTED = 10_000


class _SessionUse:
    """Note when a session was last used: at most every five minutes in each process."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._write_at: dict[str, float] = {}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = request.session
        is_outage = response.status_code >= 500  # the session may be unreadable, too
        if not is_outage and session.accessed and session.session_key and _LISTED in session:
            self._note(session.session_key)
        return response

    def _note(self, key: str) -> None:
        now = time.monotonic()
        if now < self._write_at.get(key, 0.0):
            return
        if len(self._write_at) >= _MOST_NOTED:
            self._write_at.clear()
        self._write_at[key] = now + WRITE_SECONDS
        stale = timezone.now() - timedelta(seconds=WRITE_SECONDS)
        UserSession.objects.filter(session_key=key, last_seen_at__lt=stale).update(
            last_seen_at=timezone.now()
        )


class SessionUseMiddleware(ForBrowsers, _SessionUse):
    pass


class AuthenticationMiddleware(ForBrowsers, auth.AuthenticationMiddleware):
    """Django's, with the user of the session as ``user_of`` says; read when it is first asked for."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: user_of(request))  # type: ignore[assignment]


def user_of(request: HttpRequest) -> User | AnonymousUser:
    """Return the user of the session of *request*, acting by the identity with which the session began.

    It is anonymous while that identity is suspended, and without one while nothing is granted here to a user
    whose roles come from the provider.
    """
    user = get_user(request)
    admitted = acting(user, request.session.get(IDENTITY_KEY)) if isinstance(user, User) else None
    request.looked_up_user = admitted  # type: ignore[attr-defined]  # read by the processor budget
    return admitted or AnonymousUser()


def note_login(request: HttpRequest, user: User, identity: int | None) -> None:
    """Let the session of *request* act by *identity*; end the oldest sessions if *user* has too many.

    A program that logs in for each request would otherwise leave thousands, which allauth looks through at
    each login.
    """
    request.session[_LISTED] = True
    request.session.begin_lifetime()  # type: ignore[attr-defined]  # our store
    if identity is not None:
        request.session[IDENTITY_KEY] = identity
    act_as(user, identity)
    own = UserSession.objects.filter(user_id=user.pk)
    surplus = list(own.order_by("-last_seen_at").values_list("pk", flat=True)[MOST_SESSIONS - 1 :])
    if surplus:
        _end(own.filter(pk__in=surplus))


def continue_by(request: HttpRequest, identity: int) -> None:
    """Let the session of *request* act by *identity*, which its user has just connected, if it must.

    Where something is granted to the user here, the session goes on to act by that.
    """
    user: User = request.user  # type: ignore[assignment]  # only called for users
    if request.session.get(IDENTITY_KEY) is None and not is_admitted(user, None):
        request.session[IDENTITY_KEY] = identity
        act_as(user, identity)


def of_user(user: AbstractBaseUser) -> QuerySet[UserSession]:
    """Return the sessions of *user* that have not ended, the latest used first."""
    live = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    sessions: QuerySet[UserSession] = UserSession.objects.filter(user_id=user.pk, session_key__in=live)
    return sessions.order_by("-last_seen_at")


def end(user: AbstractBaseUser, session: int) -> bool:
    """End the session with the id *session*; return False if *user* has none."""
    return _end(UserSession.objects.filter(user_id=user.pk, pk=session)) > 0


def end_others(user: AbstractBaseUser, current_key: str | None) -> int:
    """End all sessions of *user* but that with *current_key*; return their number."""
    return _end(UserSession.objects.filter(user_id=user.pk).exclude(session_key=current_key))


def end_all(user: AbstractBaseUser) -> int:
    """End all sessions of *user*; return their number."""
    return _end(UserSession.objects.filter(user_id=user.pk))


def keep_current(request: HttpRequest) -> None:
    """List the session of *request* under its new key, and end all others: the password has changed."""
    with transaction.atomic():
        end_all(request.user)  # type: ignore[arg-type]  # only called for users
        UserSession.objects.create_from_request(request)


def clear_expired() -> None:
    """Delete expired sessions."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()


@transaction.atomic
def _end(sessions: QuerySet[UserSession]) -> int:
    keys = list(sessions.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=keys).delete()
    UserSession.objects.filter(session_key__in=keys).delete()
    return len(keys)
