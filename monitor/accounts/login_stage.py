"""The step of a login that waits for the second factor; it ends when the account's credentials change."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from allauth.account.stages import LoginStageController
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from django.contrib.auth.models import User

if TYPE_CHECKING:
    from django.http import HttpRequest

_CREDENTIALS = "credentials"


class SecondFactorStage(AuthenticateStage):  # type: ignore[misc]  # allauth has no types
    """Remembers which credentials the account had when the login began to wait."""

    def handle(self) -> tuple[Any, bool]:
        response, goes_on = super().handle()
        if response is not None:
            self.state[_CREDENTIALS] = _digest_of_credentials(self.login.user.pk)
        return response, goes_on

    def is_outdated(self) -> bool:
        """Return whether the password or the factors have changed since, or the account was disabled."""
        return bool(self.state.get(_CREDENTIALS) != _digest_of_credentials(self.login.user.pk))


def waiting_login(request: HttpRequest) -> SecondFactorStage | None:
    """Return the login of *request* that waits for its second factor."""
    stage: SecondFactorStage | None = LoginStageController.enter(request, SecondFactorStage.key)
    return stage


def _digest_of_credentials(user_id: int) -> str:
    """Return what changes with the password, the factors and the state of the account, and tells none."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None:
        return ""
    factors = sorted(Authenticator.objects.filter(user=user).values_list("pk", flat=True))
    return hashlib.sha256(f"{user.get_session_auth_hash()} {factors}".encode()).hexdigest()
