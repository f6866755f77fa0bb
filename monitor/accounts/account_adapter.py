"""What django-allauth asks about accounts: passwords are throttled, and users cannot sign up."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth import authenticate
from django.core.exceptions import PermissionDenied
from django.shortcuts import render
from django.urls import reverse

from monitor.accounts import attempts, events, factor_duty, known_browsers, sessions
from monitor.models.role import reads_measurements

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest, HttpResponse

_MESSAGES = {
    "mfa/messages/totp_activated.txt": "Authenticator app added.",
    "mfa/messages/totp_deactivated.txt": "Authenticator app removed.",
    "mfa/messages/webauthn_added.txt": "Passkey added.",
    "mfa/messages/webauthn_removed.txt": "Passkey removed.",
    "mfa/messages/recovery_codes_generated.txt": "The recovery codes are new: keep them in a safe place.",
    "socialaccount/messages/account_connected.txt": "Connected: you can log in there from now on.",
    "socialaccount/messages/account_connected_updated.txt": "This account is connected already.",
    "socialaccount/messages/account_connected_other.txt": "This account belongs to another user here.",
}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "Wrong user name or password.",
        "incorrect_password": "Wrong password.",
        "incorrect_code": "Wrong code.",
    }

    def get_login_stages(self) -> list[str]:
        """Return allauth's stages, with ours for the second factor."""
        ours = {"allauth.mfa.stages.AuthenticateStage": "monitor.accounts.login_stage.SecondFactorStage"}
        return [ours.get(stage, stage) for stage in super().get_login_stages()]

    def is_open_for_signup(self, _request: HttpRequest) -> bool:
        """Refuse: administrators make local accounts."""
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        """Check a password; also when a user confirms an action by it."""
        name = credentials["username"]
        attempt = attempts.password_attempt(request, name)
        user = authenticate(request, username=name, password=credentials["password"])
        if user is None:
            events.refuse(request, name, "wrong name or password")
            return None
        attempt.succeed()
        return user

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> HttpResponse:
        sessions.note_login(request, user)
        # Set by the login of the provider; a second factor of ours has come between if it is missing.
        at_provider = getattr((kwargs["signal_kwargs"] or {}).get("sociallogin"), "verified_login", None)
        factor_duty.note_provider_factor(
            request, *((at_provider.amr, at_provider.acr) if at_provider else ())
        )
        response: HttpResponse = super().post_login(request, user, **kwargs)
        known_browsers.mark(response, attempts.normalised(user.get_username()))
        return response

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the first page: that of the account for users that may open no other."""
        if reads_measurements(request.user):
            return str(super().get_login_redirect_url(request))
        return reverse("account")

    def respond_user_inactive(self, request: HttpRequest, user: AbstractBaseUser) -> HttpResponse:
        events.refuse(request, user.get_username(), "the account is disabled")
        return render(
            request, "pages/login_refused.html", {"reason": "disabled"}, status=HTTPStatus.FORBIDDEN
        )

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address of the client; ``::`` if it is none, as for a client at a Unix socket."""
        try:
            return str(super().get_client_ip(request))
        except PermissionDenied:
            return "::"

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str = "",
        *_: Any,
        message: str = "",
        **__: Any,
    ) -> None:
        """Say what has changed; a login and a logout need no message."""
        if text := message or _MESSAGES.get(message_template):
            super().add_message(request, level, message=text)
