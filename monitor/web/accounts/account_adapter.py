"""What django-allauth asks about accounts: passwords are throttled, and users cannot sign up."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.auth import authenticate
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from monitor.core.networks import ip_of
from monitor.models import Identity
from monitor.models.role import reads_measurements
from monitor.operations.web_server.client_address import client_address
from monitor.web.accounts import (
    attempts,
    door_reasons,
    doors,
    events,
    factor_duty,
    factor_failures,
    known_browsers,
    sessions,
)
from monitor.web.accounts.confirmation import AT_PROVIDER, CODE, PASSKEY, PASSWORD
from monitor.web.accounts.environment import AUTH_TIME

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
    from django.http import HttpRequest, HttpResponse

_WAYS = "ways_to_confirm"  # the attribute of a request with what it was told
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
        """Return allauth's stages between ours, with which a login begins and is completed."""
        ours = "monitor.web.accounts.login_stage"
        return [f"{ours}.BeginStage", *super().get_login_stages(), f"{ours}.CompleteStage"]

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """Return the ways in which *user* can confirm that it is the owner of the account.

        A page that is opened asks several times, and is told the same; a form that is sent asks again.
        """
        if self.request is None or self.request.method != "GET":
            return self._ways_to_confirm(user)
        told: dict[Any, list[dict[str, Any]]] = self.request.__dict__.setdefault(_WAYS, {})
        if user.pk not in told:
            told[user.pk] = self._ways_to_confirm(user)
        return list(told[user.pk])

    def _ways_to_confirm(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """Return the ways of *user* now.

        A password without a local door is inactive, here as well. The provider confirms by itself where its
        tokens say when the user was authenticated; else a second factor here, if there is one, does instead.
        """
        ways: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if not user.is_authenticated:
            return ways
        if not doors.has_local_door(user, timezone.now()):
            ways = [way for way in ways if way["id"] != PASSWORD]
        provider = settings.GRIDCAST_IDENTITY_PROVIDER
        has_factor = any(way["id"] in {CODE, PASSKEY} for way in ways)
        if provider is None or not (provider.confirm == AUTH_TIME or (provider.confirm and not has_factor)):
            return ways
        if doors.current_identities(user):
            url = reverse("account-confirm-provider")
            words = f"Log in again at {provider.name}"
            ways.append({"id": AT_PROVIDER, "description": words, "url": url})
        return ways

    def is_open_for_signup(self, _request: HttpRequest) -> bool:
        """Refuse: administrators make local accounts."""
        return False

    def populate_username(self, _request: HttpRequest, user: AbstractBaseUser) -> None:
        """Keep the name that was checked; in place of one that it refuses, allauth would make another one."""
        if not user.get_username():
            raise ValueError("expected a name that users.check_foreign_name accepts")

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        """Check a password; also when a user confirms an action by it."""
        name = credentials["username"]
        with attempts.password_attempt(request, name) as attempt:
            user = authenticate(request, username=name, password=credentials["password"])
            if user is None:
                is_disabled = hasattr(request, "is_of_disabled_account")
                reason = "the account is disabled" if is_disabled else "wrong name or password"
                events.refuse(request, name, reason)
                return None
            attempt.succeed()
            if request.user.is_authenticated and not doors.has_local_door(user, timezone.now()):
                events.refuse(request, name, "the password is inactive: the account has no local door")
                return None
            return user

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        """Refuse a login by password or passkey of an account without a local door."""
        refusal: HttpResponse | None = super().pre_login(request, user, **kwargs)
        by_provider = "sociallogin" in (kwargs.get("signal_kwargs") or {})  # its adapter has asked for roles
        if refusal is not None or by_provider or doors.has_local_door(user, timezone.now()):
            return refusal
        closed = door_reasons.closed_door(user, timezone.now())
        events.refuse(request, user.get_username(), f"no local door: {closed.reason if closed else ''}")
        context = {"reason": "no_local_door", "name": user.get_username(), "closed": closed}
        return render(request, "pages/login_refused.html", context, status=HTTPStatus.FORBIDDEN)

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        """Let the session act by the identity that logged in, and go on to the page that was asked for."""
        login = (kwargs.get("signal_kwargs") or {}).get("sociallogin")
        if login is None:
            identity = doors.identity_of_local_login(user, timezone.now())
        else:
            identity = Identity.objects.values_list("pk", flat=True).get(account_id=login.account.pk)
        sessions.note_login(request, user, identity)
        # Set by the login of the provider; a second factor of ours has come between if it is missing.
        at_provider = getattr(login, "verified_login", None)
        factor_duty.note_provider_factor(
            request, *((at_provider.amr, at_provider.acr) if at_provider else ())
        )
        response: HttpResponse = super().post_login(request, user, **kwargs)
        factor_failures.tell(request, user)
        attempts.take_back_start(request)
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
        address = client_address(request)
        return address if ip_of(address) else "::"

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
