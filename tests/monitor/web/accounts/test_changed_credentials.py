"""A change of credentials ends what was before it, and is in the audit record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from monitor.models import ApiToken, AuditEvent
from tests.monitor.web.accounts.device import Device, options_of
from tests.monitor.web.accounts.logins import add_app, as_confirmed, code_of, confirm, is_logged_in, log_in
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db(transaction=True)  # allauth announces after the commit
Browsers = Callable[[], Client]
NEW = "another correct horse"


def changes(kind: str) -> list[tuple[Any, Any]]:
    events = AuditEvent.objects.order_by("pk").values_list("changes", flat=True)
    return [(each["before"], each["after"]) for made in events for each in made if each["kind"] == kind]


def test_an_added_and_a_removed_factor_end_all_other_sessions(
    browser_elsewhere: Browsers, reader: User
) -> None:
    own, other = browser_elsewhere(), browser_elsewhere()
    for browser in (own, other):
        log_in(browser, reader)
    secret = add_app(own)
    assert (is_logged_in(own), is_logged_in(other)) == (True, False)
    assert changes("second factor") == [(None, "totp"), (None, "recovery_codes")]
    log_in(other, reader)
    other.post("/login/second-factor/", {"code": code_of(secret)})
    assert is_logged_in(other)
    confirm(own)
    own.post("/account/recovery-codes/new/")
    assert not is_logged_in(other)
    assert changes("second factor")[2:] == [("recovery_codes", None), (None, "recovery_codes")]
    own.post("/account/app/remove/")
    assert ("totp", None) in changes("second factor")
    assert is_logged_in(own)


def test_a_command_that_removes_factors_ends_all_sessions(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    add_app(browser)
    call_command("account", "remove-second-factors", str(reader))
    assert not is_logged_in(browser)


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_new_password_asks_about_tokens(browser: Client, reader: User, is_asked: bool) -> None:
    log_in(browser, reader)
    text = ApiToken.objects.issue(reader, "program", ["read"])
    assert "Revoke 1 API token of the account, too" in browser.get("/account/password/").content.decode()
    form = {"old_password": builders.PASSWORD, "new_password1": NEW, "new_password2": NEW}
    browser.post("/account/password/", {**form, **({"revoke_tokens": "1"} if is_asked else {})})
    assert (ApiToken.objects.find(text) is None) == is_asked
    assert is_logged_in(browser)
    assert changes("password") == [("set", "set anew")]


def test_a_renamed_passkey_is_listed_with_both_names(browser: Client, reader: User) -> None:
    browser.defaults["SERVER_NAME"] = "localhost"  # passkeys need a name
    log_in(browser, reader)
    device, page = Device(), "/account/passkeys/add/"
    credential = device.register(options_of(as_confirmed(browser, reader), page))
    browser.post(page, {"name": "Laptop", "credential": credential})
    passkey = Authenticator.objects.get(user=reader, type="webauthn")
    browser.post(f"/account/passkeys/{passkey.pk}/rename/", {"name": "Key"})
    assert changes("passkey") == [("Laptop", "Key")]
