"""Steps of a login that several tests take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from allauth.account.internal.flows.login import (
    _AUTHENTICATION_METHODS_USER_SESSION_KEY as RECORDS_USER_KEY,
)
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as RECORDS_KEY
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth.models import User

from tests.monitor.web.pages import builders

if TYPE_CHECKING:
    from django.test import Client

PERIOD_SECONDS = 30


def log_in(browser: Client, user: User | str, password: str = builders.PASSWORD, **fields: str) -> Any:
    form = {"login": str(user), "password": password, **fields}
    return browser.post("/login/", form)


def as_confirmed(browser: Client, user: User, *, seconds_ago: float = 0) -> Client:
    """Let the session of *user* be as after a confirmation, also of an account without a password."""
    session = browser.session
    session[RECORDS_KEY] = [{"method": "password", "at": time.time() - seconds_ago, "reauthenticated": True}]
    session[RECORDS_USER_KEY] = str(user.pk)
    session.save()
    return browser


def is_logged_in(browser: Client) -> bool:
    """Whether the login page sends the browser on; it is cheaper than the other pages."""
    answer = browser.get("/login/")
    return answer.status_code == 302 and answer["Location"] == "/"


def confirm(browser: Client, *, next_path: str = "/account/") -> Any:
    """Enter the password again, as changes of second factors ask."""
    return browser.post("/account/confirm/password/", {"password": builders.PASSWORD, "next": next_path})


def code_of(secret: str, periods: int = 0) -> str:
    """Compute the code that an authenticator app shows, now or some periods later."""
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // PERIOD_SECONDS + periods)))


def add_app(browser: Client, periods: int = -1) -> str:
    """Add an authenticator app to the account of a logged-in browser; return its secret."""
    confirm(browser)
    browser.get("/account/app/")
    secret = str(browser.session["mfa.totp.secret"])
    for _ in range(2):  # a period may end between the code and its check
        answer = browser.post("/account/app/", {"code": code_of(secret, periods)})
        if answer.status_code == 302:
            break
    assert answer["Location"] == "/account/recovery-codes/"
    return secret
