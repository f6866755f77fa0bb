"""Logging in with a password, and failing to."""

from __future__ import annotations

import html
import logging
from collections.abc import Callable

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AuditEvent
from monitor.models.role import UserRole
from monitor.web.accounts import attempts, events, failure_counts, throttle
from monitor.web.accounts.hashing import Argon2
from monitor.web.accounts.throttle import FailureLimit
from tests.monitor.web.accounts.logins import is_logged_in, log_in
from tests.monitor.web.pages import builders

Browsers = Callable[[], Client]


def fail(browser: Client, user: User | str, times: int = 1) -> list[int]:
    return [log_in(browser, user, "wrong").status_code for _ in range(times)]


def use_up(limit: FailureLimit, value: str, *, leaving: int = 0) -> None:
    """Count failures, as so many logins would."""
    for _ in range(limit.failures - leaving):
        throttle.limits().count(limit, value)


def test_too_many_wrong_passwords_are_answered_with_429_and_logged(
    browser: Client, reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger=events.__name__):
        assert set(fail(browser, reader, throttle.USER_AT_ADDRESS.failures)) == {200}
        answer = log_in(browser, reader)
        assert answer.status_code == 429, "also with the right password: the answer must not tell"
        fail(browser, reader, 3)
    assert 0 < int(answer["Retry-After"]) <= failure_counts.WINDOW_SECONDS
    assert "You can try again in" in answer.content.decode()
    refusals = [
        record.getMessage() for record in caplog.records if "too many failures" in record.getMessage()
    ]
    assert len(refusals) == 1, refusals
    assert f"user {str(reader)!r} from 198.18." in refusals[0]
    assert not is_logged_in(browser)


def test_another_spelling_of_a_name_has_no_attempts_of_its_own(browser: Client, reader: User) -> None:
    fail(browser, reader, throttle.USER_AT_ADDRESS.failures)
    for spelling in (f" {reader} ", str(reader).replace("r", "\N{FULLWIDTH LATIN SMALL LETTER R}")):
        assert fail(browser, spelling) == [429], spelling


def test_a_login_does_not_forget_the_failures_of_an_account_that_differs_by_case(
    browser: Client, reader: User
) -> None:
    other = builders.user(str(reader).upper(), password=builders.PASSWORD)
    allowed = throttle.USER_AT_ADDRESS.failures
    fail(browser, reader, allowed - 1)
    log_in(browser, other)
    browser.post("/logout/")
    assert fail(browser, reader, 2) == [200, 429]


def test_one_address_cannot_try_names_without_end(browser: Client, db: None) -> None:
    use_up(throttle.ADDRESS, browser.defaults["REMOTE_ADDR"], leaving=3)
    assert {status for name in ("ada", "bob", "eve") for status in fail(browser, name)} == {200}
    answer = log_in(browser, "one-more", "wrong")
    assert answer.status_code == 429
    assert "from your network" in answer.content.decode()


def test_one_address_cannot_start_logins_without_end(browser: Client, db: None) -> None:
    """Each start stores a session."""
    challenge = {"accept": "application/json"}
    use_up(throttle.START, browser.defaults["REMOTE_ADDR"])
    answer = browser.get("/login/passkey/", headers=challenge)
    assert (answer.status_code, int(answer["Retry-After"]) > 0) == (429, True)


def test_neighbouring_ipv6_addresses_count_as_one(db: None) -> None:
    use_up(throttle.ADDRESS, "2001:db8:0:1::/64", leaving=3)
    for number in range(1, 4):
        assert fail(Client(REMOTE_ADDR=f"2001:db8:0:1::{number}"), f"name-{number}") == [200]
    assert fail(Client(REMOTE_ADDR="2001:db8:0:1:ffff::1"), "ada") == [429]
    assert fail(Client(REMOTE_ADDR="2001:db8:0:2::1"), "ada") == [200]


def test_one_address_cannot_lock_the_owner_out_elsewhere(browser_elsewhere: Browsers, reader: User) -> None:
    fail(browser_elsewhere(), reader, throttle.USER_AT_ADDRESS.failures + 5)
    owner = browser_elsewhere()
    log_in(owner, reader)
    assert is_logged_in(owner)


def test_many_addresses_cannot_lock_the_owner_out_of_a_known_browser(
    browser_elsewhere: Browsers, reader: User
) -> None:
    known, unknown = browser_elsewhere(), browser_elsewhere()
    log_in(known, reader)
    known.post("/logout/")
    use_up(throttle.USER, str(reader), leaving=3)
    for _ in range(3):
        assert fail(browser_elsewhere(), reader) == [200]
    assert log_in(unknown, reader).status_code == 429
    log_in(known, reader)
    assert is_logged_in(known)
    assert attempts.unlock(str(reader))[throttle.USER] == throttle.USER.failures
    log_in(unknown, reader)
    assert is_logged_in(unknown), "an administrator has unlocked the account"


def test_a_known_browser_is_known_for_its_user_only_and_has_limits_as_well(
    browser_elsewhere: Browsers, reader: User
) -> None:
    known = browser_elsewhere()
    other = builders.user(f"{reader}-other", password=builders.PASSWORD)
    log_in(known, reader)
    known.post("/logout/")
    assert fail(known, other, throttle.USER_AT_ADDRESS.failures + 1)[-1] == 429
    assert fail(known, reader, throttle.KNOWN_BROWSER.failures + 1) == [
        *[200] * throttle.KNOWN_BROWSER.failures,
        429,
    ]


def test_a_forged_mark_of_a_known_browser_is_ignored(browser: Client, reader: User) -> None:
    browser.cookies["gridcast_known"] = "0123456789abcdef:laptop:1:forged"
    assert fail(browser, reader, throttle.USER_AT_ADDRESS.failures + 1)[-1] == 429


def test_a_name_is_logged_so_that_it_cannot_forge_a_line(
    browser: Client, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger=events.__name__):
        fail(browser, "ada\nlogin: user 'root'")
    assert "\n" not in caplog.messages[0]


def test_an_inactive_account_gets_the_same_answer_as_a_wrong_password(browser: Client, reader: User) -> None:
    User.objects.filter(pk=reader.pk).update(is_active=False)
    assert "Wrong user name or password." in log_in(browser, reader).content.decode()


@pytest.mark.parametrize("form", [{}, {"login": "", "password": ""}, {"login": "a" * 5000, "password": "b"}])
def test_an_incomplete_form_is_shown_again(browser: Client, db: None, form: dict[str, str]) -> None:
    answer = browser.post("/login/", form)
    assert (answer.status_code, 'role="alert"' in answer.content.decode()) == (200, True)


@pytest.mark.parametrize("target", ["https://evil.example.org/", "//evil.example.org", "javascript:alert(1)"])
def test_a_login_never_leads_to_another_site(browser: Client, reader: User, target: str) -> None:
    assert log_in(browser, reader, next=target)["Location"] == "/"


def test_a_login_gets_a_new_session_key_that_scripts_and_other_sites_cannot_use(
    browser: Client, reader: User
) -> None:
    browser.get("/login/")
    session = browser.session  # an attacker may have planted its key
    session["planted"] = True
    session.save()
    browser.cookies[settings.SESSION_COOKIE_NAME] = before = str(session.session_key)
    log_in(browser, reader)
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie.value != before
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert cookie["max-age"] == settings.SESSION_COOKIE_AGE


def test_strangers_cannot_sign_up_or_reset_passwords(browser: Client, db: None) -> None:
    for path in ("/signup/", "/login/signup/", "/account/signup/", "/password/reset/", "/account/email/"):
        assert browser.get(path).status_code == 404, path


def test_the_admin_site_has_no_login_of_its_own(browser: Client, reader: User) -> None:
    answer = browser.get("/admin/", follow=True)
    assert answer.redirect_chain[-1] == ("/login/?next=/admin/", 302)
    posted = browser.post("/admin/login/", {"username": str(reader), "password": builders.PASSWORD})
    assert posted["Location"] == "/login/?next=/admin/"
    assert not is_logged_in(browser)
    log_in(browser, reader)
    refused = browser.get("/admin/", follow=True)
    assert (refused.status_code, "may not open the admin site" in refused.content.decode()) == (403, True)
    assert browser.get("/admin/password_change/").templates[0].name == "pages/account_password.html"


def test_the_login_of_the_admin_site_leads_a_user_that_may_open_it_on(browser: Client, reader: User) -> None:
    roles.grant(reader, Grant(UserRole.OPERATOR))
    log_in(browser, reader)
    assert browser.get("/admin/login/")["Location"] == "/admin/"
    assert not AuditEvent.objects.filter(outcome="denied").exists()


def test_a_client_at_a_unix_socket_can_log_in(reader: User) -> None:
    browser = Client(REMOTE_ADDR="")
    log_in(browser, reader)
    assert is_logged_in(browser)


def test_passwords_are_hashed_with_argon2id() -> None:
    encoded = Argon2().encode("correct horse battery", "a-salt-of-16-byte")
    assert encoded.startswith("argon2$argon2id$v=19$m=65536,t=3,p=4$")
    assert Argon2().verify("correct horse battery", encoded)
    assert not Argon2().verify("correct horse batteri", encoded)


def test_a_weak_password_is_refused(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    for password, reason in (
        ("short", "at least 10 characters"),
        ("1234512345123", "entirely numeric"),
        ("password1234", "too common"),
        (f"{reader}-2026", "too similar to the username"),
    ):
        form = {"old_password": builders.PASSWORD, "new_password1": password, "new_password2": password}
        assert reason in html.unescape(browser.post("/account/password/", form).content.decode())
