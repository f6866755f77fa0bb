"""A passkey that logs in without the password is a door; one that does not is none. All places agree."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models.role import UserRole
from monitor.web.accounts import account_checks, identities
from monitor.web.accounts.identities import NoDoorLeft
from tests.monitor.web.accounts.device import Device, login_options, options_of
from tests.monitor.web.accounts.identities import identity_of, session_by
from tests.monitor.web.accounts.logins import as_confirmed, is_logged_in, log_in
from tests.monitor.web.accounts.test_door_reasons import text_of
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
ADD = "/account/passkeys/add/"
ALONE = "passkey, also without the password"
NO_KEY = "has no password, and no passkey that logs in without one"


def at_localhost() -> Client:
    return Client(SERVER_NAME="localhost", REMOTE_ADDR="198.51.100.7")


def add_passkey(user: User, *, is_passwordless: bool) -> Device:
    browser, device = at_localhost(), Device()
    browser.force_login(user)
    credential = device.register(options_of(as_confirmed(browser, user), ADD))
    more = {"passwordless": "on"} if is_passwordless else {}
    answer = browser.post(ADD, {"name": "Key", "credential": credential, **more})
    assert answer.status_code == 302
    return device


def logs_in(user: User, device: Device | None) -> bool:
    """Whether *user* gets in at the login page without a second factor."""
    browser = at_localhost()
    if device is None:
        log_in(browser, user)
    else:
        browser.post("/login/passkey/", {"credential": device.authenticate(login_options(browser))})
    return is_logged_in(browser)


def can_be_disconnected(user: User) -> bool:
    try:
        identities.disconnect(identity_of(user, "viewer"))
    except NoDoorLeft:
        return False
    return True


def is_checked_as_able_to_log_in(_user: User) -> bool:
    return account_checks.accounts() == []


def is_opened_with_a_promise(user: User) -> bool:
    printed = io.StringIO()
    call_command("account", "open", str(user), stdout=printed)
    assert ("set a password" in printed.getvalue()) == (NO_KEY in printed.getvalue())
    return NO_KEY not in printed.getvalue()


def is_told_the_way_on_its_page(user: User) -> bool:
    """The page for a new password says how a user without one logs in."""
    browser = session_by(at_localhost(), user, None)
    page = browser.get("/account/password/")
    return page.status_code == 200 or "you log in with a passkey" in text_of(page)


def is_shown_on_the_page_of_the_account(user: User) -> bool:
    browser = session_by(at_localhost(), user, None)
    return user.has_usable_password() or ALONE in text_of(browser.get("/account/"))


def is_shown_to_administrators(user: User) -> bool:
    browser = session_by(at_localhost(), user, None)
    page = text_of(as_confirmed(browser, user).get(f"/access/users/{user.pk}/"))
    return user.has_usable_password() or ALONE in page


ASKED = [
    can_be_disconnected,
    is_checked_as_able_to_log_in,
    is_opened_with_a_promise,
    is_told_the_way_on_its_page,
    is_shown_on_the_page_of_the_account,
    is_shown_to_administrators,
]
KEYS = {"no key": None, "password": None, "passkey": True, "second factor": False}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("key", KEYS)
def test_each_place_knows_whether_an_account_has_a_key(asked: Callable[[User], bool], key: str) -> None:
    user = builders.user(
        f"keyed-{key.replace(' ', '-')}", password=builders.PASSWORD if key == "password" else None
    )
    roles.grant(user, Grant(UserRole.ADMINISTRATOR))
    user = User.objects.get(pk=user.pk)
    is_passwordless = KEYS[key]
    device = None if is_passwordless is None else add_passkey(user, is_passwordless=is_passwordless)
    assert logs_in(user, device) == (key in {"password", "passkey"})
    assert asked(user) == (key in {"password", "passkey"})


def test_no_other_place_reads_from_a_passkey_whether_it_logs_in() -> None:
    """``logs_in_without_password`` does; django-allauth's answer is another one."""
    reads = re.compile(r"\.is_passwordless\b|(?<!cleaned_)data(\.|\[|\.get\()[\"']?passwordless")
    root = Path(settings.BASE_DIR)
    files = [*(root / "monitor").rglob("*.py"), *(root / "templates").rglob("*.html")]
    assert [str(path) for path in files if reads.search(path.read_text("utf-8"))] == []
