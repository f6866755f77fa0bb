"""The steps of a login: it begins, may wait for the second factor, and is completed if it still may."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as STEPS
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.stages import LoginStage, LoginStageController
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from django.contrib import messages
from django.contrib.auth.models import User
from django.shortcuts import redirect
from django.utils import timezone

from monitor.models import EndedSessions
from monitor.web.accounts import codes, doors, events, sessions

if TYPE_CHECKING:
    from allauth.account.models import Login
    from django.http import HttpRequest, HttpResponse

_CREDENTIALS, _ENDED = "credentials", "ended"  # in the state of the beginning
CHANGED = "The password, the second factors or the rights of the account have changed: log in again."


class BeginStage(LoginStage):  # type: ignore[misc]  # allauth has no types
    """Remembers what the account was like when its password, passkey or provider was accepted.

    The session may have the steps of an earlier login: they confirm nothing, and replace no second factor.
    """

    key = "begin"

    def handle(self) -> tuple[None, bool]:
        user = self.login.user
        self.request.session[STEPS] = get_authentication_records(self.request, user)[-1:]
        self.state[_ENDED] = EndedSessions.objects.times(user.pk)
        self.state[_CREDENTIALS] = _digest_of_credentials(user)
        return None, True


class CompleteStage(LoginStage):  # type: ignore[misc]
    """Completes a login, also one that did not wait, only if the account would be let in as it began."""

    key = "complete"

    def handle(self) -> tuple[HttpResponse | None, bool]:
        if self.login.user is not None:
            codes.lock_factors(self.login.user)  # what ends the login at this moment comes before or after
        if is_outdated(self.request, self.login):
            return refuse_outdated(self.request, self.login), False
        sessions.begin(self.request, _beginning(self.request, self.login)[_ENDED])
        return None, True


def waiting_login(request: HttpRequest) -> AuthenticateStage | None:
    """Return the login of *request* that waits for its second factor."""
    stage: AuthenticateStage | None = LoginStageController.enter(request, AuthenticateStage.key)
    return stage


def is_outdated(request: HttpRequest, login: Login) -> bool:
    """Return whether *login* is over: the account would not be let in, or not by the same credentials.

    It is over also when all sessions of the account were ended since, whatever was the cause.
    """
    user = User.objects.filter(pk=getattr(login.user, "pk", 0)).first()
    began = _beginning(request, login)
    if user is None or began.get(_ENDED) != EndedSessions.objects.times(user.pk):
        return True
    social = (login.signal_kwargs or {}).get("sociallogin")
    account = None if social is None else social.account.pk
    is_same = began.get(_CREDENTIALS) == _digest_of_credentials(user)
    return not is_same or not doors.lets_in(user, account, timezone.now())


def refuse_outdated(request: HttpRequest, login: Login) -> HttpResponse:
    """Say that *login* is over, and lead to the login page."""
    events.refuse(request, str(login.user or ""), "the account has changed since the login began")
    messages.error(request, CHANGED)
    return redirect("login")


def _beginning(request: HttpRequest, login: Login) -> dict[str, Any]:
    state: dict[str, Any] = LoginStageController(request, login).get_stage(BeginStage.key).state
    return state


def _digest_of_credentials(user: User) -> str:
    """Return what changes with the password and the factors of *user*, and tells none."""
    factors = sorted(Authenticator.objects.filter(user=user).values_list("pk", flat=True))
    return hashlib.sha256(f"{user.get_session_auth_hash()} {factors}".encode()).hexdigest()
