"""What happens to accounts, in the log and for the audit record: logins, refusals, passwords, second factors.

One line each, with the name as it was given, quoted, and the address: tools such as fail2ban can read them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from allauth.account.signals import user_logged_in
from allauth.mfa import signals as second_factors
from allauth.socialaccount.adapter import get_adapter as get_provider_adapter
from allauth.socialaccount.signals import social_account_added
from django.contrib.auth.signals import user_logged_out, user_login_failed

from monitor.accounts import factor_failures, sessions
from monitor.web.client_address import client_address

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, User
    from django.http import HttpRequest

logger = logging.getLogger(__name__)


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


def refuse(request: HttpRequest, name: str, reason: str) -> None:
    """Log that a login as *name* was refused, and announce it as Django does a wrong password."""
    one_line = " ".join(reason.split())  # it may have the text of an identity provider
    logger.warning("login refused: user %r from %s: %s", name, _source(request), one_line)
    user_login_failed.send(sender=__name__, credentials={"username": name}, request=request)


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
