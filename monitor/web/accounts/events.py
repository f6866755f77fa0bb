"""What happens to accounts, in the log and for the audit record: logins, refusals, passwords, second factors.

One line each, with the name as it was given, quoted, and the address: tools such as fail2ban can read them.
A refusal begins with what was refused: a login, a confirmation of a user that is logged in, or a connection.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from allauth.account.signals import user_logged_in
from allauth.mfa import signals as second_factors
from allauth.socialaccount.adapter import get_adapter as get_provider_adapter
from allauth.socialaccount.signals import social_account_added
from django.contrib.auth.signals import user_logged_out, user_login_failed

from monitor.operations.web_server.client_address import client_address
from monitor.web.accounts import factor_failures, sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import AbstractBaseUser, User
    from django.http import HttpRequest

logger = logging.getLogger(__name__)

CONFIRMATION, CONNECTION = "confirmation", "connection"
# What is refused after a login at the provider, and why, by the reason of the page.
PROVIDER_REFUSALS: Mapping[str, tuple[str, str]] = {
    "no_role": ("login", "none of the groups that it named has a role here"),
    "name_taken": ("login", "an account of this name, or of one that is alike, is not connected"),
    "name_refused": ("login", "what it calls the user cannot be the name of an account"),
    "not_connected": (CONNECTION, "confirmed too early, begun by another user, or all identities are taken"),
    "confirmed_by_another": (CONFIRMATION, "another account of the provider logged in"),
    "confirmed_too_early": (CONFIRMATION, "it named no login within the last five minutes"),
    "confirms_here": (CONFIRMATION, "the account confirms here, not there"),
}


def connect() -> None:
    """Log what allauth and Django announce."""
    user_logged_in.connect(_logged_in)
    user_logged_out.connect(_logged_out)
    social_account_added.connect(_identity_connected)
    second_factors.authenticator_added.connect(_factor_added)
    second_factors.authenticator_removed.connect(_factor_removed)
    second_factors.authenticator_reset.connect(_factor_reset)
    second_factors.authentication_failed.connect(_code_refused)


def record(request: HttpRequest, name: str, event: str) -> None:
    """Log *event* of the account *name*, as the request gives it."""
    logger.info("%s: user %r from %s", event, name, _source(request))


def refuse(request: HttpRequest, name: str, reason: str, act: str = "") -> None:
    """Log that *act* of the account *name* was refused, and announce it as Django does a wrong password.

    Without an act, a user that is logged in has tried to confirm something, and any other to log in.
    """
    act = act or (CONFIRMATION if request.user.is_authenticated else "login")
    _announce(request, f"{act} refused: user {name!r}", reason, {"username": name})


def refuse_by_provider(request: HttpRequest, name: str, provider: str, code: str) -> None:
    """Log in words that what *name* did at *provider* was refused for *code* of ``PROVIDER_REFUSALS``."""
    act, words = PROVIDER_REFUSALS[code]
    refuse(request, name, f"{provider}: {words}", act)


def refuse_logout(request: HttpRequest, reason: str) -> None:
    """Log that a logout which the provider reported was refused; it names no user before it is verified."""
    _announce(request, "logout by the provider refused:", reason, {})


def _announce(request: HttpRequest, refused: str, reason: str, credentials: Mapping[str, str]) -> None:
    one_line = " ".join(reason.split())  # it may have the text of an identity provider
    logger.warning("%s from %s: %s", refused, _source(request), one_line)
    user_login_failed.send(sender=__name__, credentials=credentials, request=request)


def _source(request: HttpRequest) -> str:
    return client_address(request) or "a Unix socket"


def _logged_in(request: HttpRequest, user: AbstractBaseUser, **_: Any) -> None:
    record(request, user.get_username(), "login")


def _identity_connected(request: HttpRequest, sociallogin: Any, **_: Any) -> None:
    record(request, sociallogin.user.get_username(), "identity connected")
    identity = get_provider_adapter().admit(sociallogin)
    sessions.continue_by(request, identity.pk)


def _logged_out(request: HttpRequest, user: AbstractBaseUser | None, **_: Any) -> None:
    if user is not None:
        record(request, user.get_username(), "logout")


def _factor_added(request: HttpRequest, user: AbstractBaseUser, authenticator: Any, **_: Any) -> None:
    record(request, user.get_username(), f"second factor added ({authenticator.type})")


def _factor_removed(request: HttpRequest, user: AbstractBaseUser, authenticator: Any, **_: Any) -> None:
    record(request, user.get_username(), f"second factor removed ({authenticator.type})")


def _factor_reset(request: HttpRequest, user: AbstractBaseUser, authenticator: Any, **_: Any) -> None:
    record(request, user.get_username(), f"second factor replaced ({authenticator.type})")


def _code_refused(request: HttpRequest, user: User, authenticator: Any, **_: Any) -> None:
    refuse(request, user.get_username(), f"wrong code ({authenticator.type})")
    factor_failures.note_failure(request, user)
