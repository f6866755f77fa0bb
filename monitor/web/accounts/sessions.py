"""The sessions of users: listed, ended, and deleted when they have expired."""

from __future__ import annotations

import time
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from allauth.account.internal.flows.login import (
    _AUTHENTICATION_METHODS_USER_SESSION_KEY as STEPS_OF_USER,
)
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as STEPS
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user
from django.contrib.auth import middleware as auth
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from monitor.depot.access.audit_trail import note
from monitor.models import EndedSessions
from monitor.models.role import act_as, acting, is_admitted
from monitor.web.accounts.browsers import ForBrowsers

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import AbstractBaseUser
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponseBase

MOST_SESSIONS = 50  # of one user
WRITE_SECONDS = 300.0
_LISTED = "gridcast_listed"  # in a session that began with a login
IDENTITY_KEY = "gridcast_identity"  # by which the session acts; missing: by what was granted here
ENDED_KEY = "gridcast_ended"  # how many times all sessions of the user had been ended; missing: never
_MOST_NOTED = 10_000
START_KEY = "login-start"  # of a login by passkey or provider, as it is counted
# What a login stores in the session before it is completed.
_OF_A_LOGIN_UNDER_WAY = (STEPS, STEPS_OF_USER, START_KEY)


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
        used_at = timezone.now()
        noted = (used_at - timedelta(seconds=WRITE_SECONDS), used_at)  # not by a clock that was ahead
        UserSession.objects.filter(session_key=key).exclude(last_seen_at__range=noted).update(
            last_seen_at=used_at
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
    whose roles come from the provider; and for ever if all sessions of the user were ended after its login.
    """
    user = get_user(request)
    is_over = getattr(user, "times_ended", 0) != request.session.get(ENDED_KEY, 0)
    admitted = None
    if isinstance(user, User) and not is_over:
        admitted = acting(user, request.session.get(IDENTITY_KEY))
    request.looked_up_user = admitted  # type: ignore[attr-defined]  # read by the processor budget
    return admitted or AnonymousUser()


def leave_earlier(request: HttpRequest) -> None:
    """Leave nothing of an earlier login, whose user is not admitted any more, to the one that completes now.

    Only what that one has stored itself stays.
    """
    if earlier := request.session.get(SESSION_KEY):
        _end(UserSession.objects.filter(user_id=earlier, session_key=request.session.session_key))
        kept = {key: request.session[key] for key in _OF_A_LOGIN_UNDER_WAY if key in request.session}
        request.session.flush()
        request.session.update(kept)


def begin(request: HttpRequest, times_ended: int) -> None:
    """Let the session of *request*, whose login is completed, be over if all were ended since it began."""
    leave_earlier(request)
    request.session[ENDED_KEY] = times_ended


def note_login(request: HttpRequest, user: User, identity: int | None) -> None:
    """Let the session of *request* act by *identity*; end the oldest sessions if *user* has too many.

    A program that logs in for each request would otherwise leave thousands, which allauth looks through at
    each login.
    """
    request.session[_LISTED] = True
    request.session.begin_lifetime()  # type: ignore[attr-defined]  # our store
    if identity is None:
        request.session.pop(IDENTITY_KEY, None)
    else:
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


def end_others(user: AbstractBaseUser, request: HttpRequest | None) -> int:
    """End all sessions of *user* but that of *request*, if it is one; return their number.

    Logins that are under way, or wait for their second factor, end as well.
    """
    times = EndedSessions.objects.add(user.pk)
    if request is None or request.session.get(SESSION_KEY) != str(user.pk):
        return _end(UserSession.objects.filter(user_id=user.pk))
    request.session[ENDED_KEY] = times
    return _end(UserSession.objects.filter(user_id=user.pk).exclude(session_key=request.session.session_key))


def end_all(user: AbstractBaseUser) -> int:
    """End all sessions of *user*, as ``end_others``; return their number."""
    return end_others(user, None)


def keep_current(request: HttpRequest) -> None:
    """List the session of *request* under its new key, and end all others: the password has changed."""
    with transaction.atomic():
        end_others(request.user, request)  # type: ignore[arg-type]  # only called for users
        UserSession.objects.create_from_request(request)


def clear_expired() -> None:
    """Delete expired sessions."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()


@transaction.atomic
def _end(sessions: QuerySet[UserSession]) -> int:
    """End *sessions*, all of one user, and return their number, which the audit record has with any cause."""
    names = dict(sessions.values_list("session_key", "user__username"))
    Session.objects.filter(session_key__in=names).delete()
    UserSession.objects.filter(session_key__in=names).delete()
    for name in set(names.values()):
        note("sessions", name, before=len(names), after="ended")
    return len(names)
