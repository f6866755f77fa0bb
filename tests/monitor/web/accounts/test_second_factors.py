"""Authenticator apps and recovery codes, with codes computed as an app does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from monitor.web.accounts import throttle
from tests.monitor.web.accounts.logins import add_app, as_confirmed, code_of, confirm, is_logged_in, log_in
from tests.monitor.web.pages import builders

Browsers = Callable[[], Client]
STEP = "/login/second-factor/"


@pytest.fixture
def secret(browser: Client, reader: User) -> str:
    """The secret of an app that was added in a browser, which is logged out again."""
    log_in(browser, reader)
    secret = add_app(browser)
    browser.post("/logout/")
    return secret


def recovery_codes(browser: Client) -> list[str]:
    confirm(browser)
    return re.findall(r"<code>(\d{8})</code>", browser.get("/account/recovery-codes/").content.decode())


def test_a_login_asks_for_the_code(browser_elsewhere: Browsers, reader: User, secret: str) -> None:
    browser = browser_elsewhere()
    assert log_in(browser, reader, next="/alerts/")["Location"] == STEP
    assert not is_logged_in(browser), "the password alone is not enough"
    assert "Wrong code." in browser.post(STEP, {"code": code_of(secret, 5)}).content.decode()
    assert browser.post(STEP, {"code": code_of(secret)})["Location"] == "/alerts/"
    assert is_logged_in(browser)


def test_the_password_alone_opens_neither_the_admin_site_nor_the_api(
    browser: Client, reader: User, secret: str
) -> None:
    User.objects.filter(pk=reader.pk).update(is_staff=True, is_superuser=True)
    log_in(browser, reader)
    assert browser.get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    assert browser.get("/admin/login/?next=/admin/")["Location"] == "/login/?next=/admin/"
    assert browser.get("/login/?next=/admin/")["Location"] == STEP
    assert browser.get("/api/v1/series").status_code == 401


def test_the_second_factor_needs_the_password_first(browser: Client, reader: User, secret: str) -> None:
    assert browser.post(STEP, {"code": code_of(secret)})["Location"] == "/login/"
    assert not is_logged_in(browser)


def test_a_code_is_valid_once(browser_elsewhere: Browsers, reader: User, secret: str) -> None:
    code = code_of(secret)
    for expected in (302, 200):
        browser = browser_elsewhere()
        log_in(browser, reader)
        assert browser.post(STEP, {"code": code}).status_code == expected


@pytest.mark.parametrize(
    "spelling",
    [
        "{:.3}{}",
        "{:.3} {}",
        "{:.3}-{}",
        "{:.3}\N{NO-BREAK SPACE}{}",
        "{:.3}\N{EN DASH}{}",
        " {:.3}\N{ZERO WIDTH SPACE}{} ",
    ],
)
@pytest.mark.parametrize("is_full_width", [False, True])
def test_a_used_code_is_refused_in_every_spelling(
    browser_elsewhere: Browsers, reader: User, secret: str, spelling: str, is_full_width: bool
) -> None:
    code = code_of(secret)
    spelt = spelling.format(code, code[3:])
    if is_full_width:
        spelt = "".join(chr(ord(each) + 0xFEE0) if each.isdigit() else each for each in spelt)
    for typed, is_accepted in ((spelt, True), (code, False), (spelt, False)):
        browser = browser_elsewhere()
        log_in(browser, reader)
        answer = browser.post(STEP, {"code": typed})
        assert is_logged_in(browser) == is_accepted
        assert is_accepted or "This code was used already." in answer.content.decode()


def test_the_code_that_added_the_app_does_not_log_in(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    secret = add_app(browser, periods=0)
    browser.post("/logout/")
    log_in(browser, reader)
    assert "used already" in browser.post(STEP, {"code": code_of(secret)}).content.decode()
    assert browser.post(STEP, {"code": code_of(secret, 1)})["Location"] == "/"


def test_a_used_code_stays_used_when_valkey_has_lost_everything(
    browser_elsewhere: Browsers, reader: User, secret: str, settings: Settings
) -> None:
    browser, other = browser_elsewhere(), browser_elsewhere()
    log_in(browser, reader)
    log_in(other, reader)
    code = code_of(secret)
    browser.post(STEP, {"code": code})
    settings.CACHES = {"default": {**settings.CACHES["default"], "KEY_PREFIX": f"empty-{reader}"}}
    assert "used already" in other.post(STEP, {"code": code}).content.decode()


def test_a_confirmation_does_not_take_a_used_code(browser: Client, reader: User, secret: str) -> None:
    log_in(browser, reader)
    code = code_of(secret)
    browser.post(STEP, {"code": code})
    form = {"code": code, "next": "/account/"}
    assert "used already" in browser.post("/account/confirm/code/", form).content.decode()
    assert browser.post("/account/confirm/code/", {**form, "code": code_of(secret, 1)}).status_code == 302


def test_codes_cannot_be_guessed_without_end(browser_elsewhere: Browsers, reader: User, secret: str) -> None:
    browser = browser_elsewhere()
    log_in(browser, reader)
    for _ in range(throttle.SECOND_FACTOR.failures):
        assert browser.post(STEP, {"code": "abc"}).status_code == 200
    other = browser_elsewhere()  # has the password, too
    log_in(other, reader)
    answer = other.post(STEP, {"code": code_of(secret)})
    assert (answer.status_code, "Too many wrong codes" in answer.content.decode()) == (429, True)
    assert int(answer["Retry-After"]) > 0


def test_wrong_codes_elsewhere_do_not_keep_the_owner_out_of_a_known_browser(
    browser: Client, browser_elsewhere: Browsers, reader: User, secret: str
) -> None:
    """The attacker knows the password; *browser* is the one in which the owner has logged in before."""
    attacker = browser_elsewhere()
    log_in(attacker, reader)
    statuses = [attacker.post(STEP, {"code": "abc"}).status_code for _ in range(20)]
    assert statuses == [200] * throttle.SECOND_FACTOR.failures + [429] * (
        20 - throttle.SECOND_FACTOR.failures
    )
    log_in(browser, reader)
    assert browser.post(STEP, {"code": "abc"}).status_code == 200, "the owner may mistype"
    assert browser.post(STEP, {"code": code_of(secret)})["Location"] == "/"


def test_a_known_browser_has_limits_as_well_and_all_browsers_together_have_one(
    browser: Client, browser_elsewhere: Browsers, reader: User, secret: str
) -> None:
    log_in(browser, reader)
    most = throttle.SECOND_FACTOR_IN_KNOWN_BROWSER.failures
    assert [browser.post(STEP, {"code": "abc"}).status_code for _ in range(most + 1)][-2:] == [200, 429]
    for _ in range(throttle.SECOND_FACTOR_IN_ALL.failures - most):
        throttle.limits().count(throttle.SECOND_FACTOR_IN_ALL, str(reader))
    other = browser_elsewhere()
    log_in(other, reader)
    answer = other.post(STEP, {"code": code_of(secret)})
    assert (answer.status_code, "Too many wrong codes" in answer.content.decode()) == (429, True)


def test_an_unlocked_account_takes_codes_again(
    browser_elsewhere: Browsers, reader: User, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = browser_elsewhere()
    log_in(browser, reader, "wrong")
    log_in(browser, reader)
    for _ in range(throttle.SECOND_FACTOR.failures + 1):
        status = browser.post(STEP, {"code": "abc"}).status_code
    assert status == 429
    call_command("account", "unlock", str(reader))
    assert f"{reader}: 1 failed logins from unknown browsers and 10 wrong codes" in capsys.readouterr().out
    assert browser.post(STEP, {"code": code_of(secret)})["Location"] == "/"


def test_a_login_that_waits_for_its_code_can_be_cancelled(browser: Client, reader: User, secret: str) -> None:
    log_in(browser, reader)
    assert browser.get("/login/")["Location"] == STEP
    browser.post("/login/cancel/")
    assert browser.get("/login/").status_code == 200


@pytest.mark.parametrize("event", ["nothing", "password", "factor added", "factors removed", "disabled"])
def test_a_login_that_waits_for_its_code_ends_when_the_credentials_change(
    browser: Client, reader: User, secret: str, event: str
) -> None:
    log_in(browser, reader)
    if event == "password":
        reader.set_password("another battery horse")
        reader.save()
    elif event == "factor added":
        Authenticator.objects.create(user=reader, type="webauthn", data={})
    elif event == "factors removed":
        call_command("account", "remove-second-factors", str(reader))
    elif event == "disabled":
        User.objects.filter(pk=reader.pk).update(is_active=False)
    answer = browser.post(STEP, {"code": code_of(secret)})
    if event != "nothing":
        assert answer["Location"] == "/login/"
        assert "have changed: log in again" in browser.get("/login/").content.decode()
    assert is_logged_in(browser) == (event == "nothing")


def test_a_recovery_code_works_once(browser_elsewhere: Browsers, reader: User, secret: str) -> None:
    browser = browser_elsewhere()
    log_in(browser, reader)
    browser.post(STEP, {"code": code_of(secret)})
    codes = recovery_codes(browser)
    assert len(codes) == 10
    downloaded = browser.get("/account/recovery-codes/download/")
    assert downloaded.content.decode().split() == codes
    assert "no-store" in downloaded["Cache-Control"]
    for typed, expected in ((f"{codes[0][:4]} {codes[0][4:]}", 302), (codes[0], 200)):
        lost_phone = browser_elsewhere()
        log_in(lost_phone, reader)
        answer = lost_phone.post(STEP, {"code": typed})
        assert answer.status_code == expected
    assert "This recovery code was used already." in answer.content.decode()
    assert recovery_codes(browser) == codes[1:]


def test_new_recovery_codes_replace_the_old(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    add_app(browser)
    before = recovery_codes(browser)
    assert browser.post("/account/recovery-codes/new/")["Location"] == "/account/recovery-codes/"
    assert not set(before) & set(recovery_codes(browser))


@pytest.mark.parametrize(
    "path",
    [
        *("app/", "app/remove/", "passkeys/add/", "passkeys/1/rename/", "passkeys/1/remove/", "connect/"),
        *("recovery-codes/", "recovery-codes/new/", "recovery-codes/download/"),
    ],
)
def test_an_account_that_cannot_confirm_changes_no_factor(path: str, browser: Client, reader: User) -> None:
    """Where a login by the provider leaves neither a password nor a factor, a stolen session adds none."""
    User.objects.filter(pk=reader.pk).update(password="!")
    browser.force_login(User.objects.get(pk=reader.pk))
    for method in (browser.get, browser.post):
        answer = method(f"/account/{path}")
        assert (answer.status_code, "Cannot confirm" in answer.content.decode()) == (403, True)


def test_changes_ask_for_the_password_again(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    for path in ("/account/app/", "/account/passkeys/add/"):
        assert browser.get(path)["Location"] == f"/account/confirm/password/?next={path.replace('/', '%2F')}"
    for _ in range(throttle.KNOWN_BROWSER.failures):
        answer = browser.post("/account/confirm/password/", {"password": "wrong"})
        assert "Wrong password." in answer.content.decode()
    assert browser.post("/account/confirm/password/", {"password": "wrong"}).status_code == 429


def test_an_app_is_added_only_with_a_code_of_it(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    page = browser.get("/account/app/").content.decode()
    assert "data:image/svg+xml;base64," in page
    browser.post("/account/app/", {"code": "000"})
    assert not Authenticator.objects.filter(user=reader).exists()


def test_without_the_app_the_password_is_enough_again(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    add_app(browser)
    browser.post("/account/app/remove/")
    assert not Authenticator.objects.filter(user=reader).exists(), "no recovery codes are left over"
    browser.post("/logout/")
    log_in(browser, reader)
    assert is_logged_in(browser)


def test_the_depot_has_no_secret_in_clear(reader: User, secret: str) -> None:
    for factor in Authenticator.objects.filter(user=reader):
        assert secret not in str(factor.data)
    stored = Authenticator.objects.get(user=reader, type="totp").data["secret"]
    assert stored.startswith("gAAAA"), "a token of Fernet"


def test_a_changed_secret_key_is_explained_and_lets_no_code_in(
    browser: Client, reader: User, secret: str
) -> None:
    of_another_key = "gAAAAABnRVxw" + "A" * 88
    Authenticator.objects.filter(user=reader, type="totp").update(data={"secret": of_another_key})
    log_in(browser, reader)
    answer = browser.post(STEP, {"code": code_of(secret)})
    assert "secret key has changed" in answer.content.decode()
    assert f"manage.py account remove-second-factors {reader}" in answer.content.decode()
    assert not is_logged_in(browser)


def test_a_wrong_code_hints_at_the_clock(browser: Client, reader: User, secret: str) -> None:
    log_in(browser, reader)
    assert "check the clock of its device" in browser.post(STEP, {"code": "000000"}).content.decode()


def test_a_lost_factor_is_removed_by_a_command(browser: Client, reader: User, secret: str) -> None:
    call_command("account", "remove-second-factors", str(reader))
    log_in(browser, reader)
    assert is_logged_in(browser)


def test_administrators_see_and_remove_factors_but_no_secrets(
    browser: Client, reader: User, secret: str
) -> None:
    log_in(browser, reader)
    browser.post(STEP, {"code": code_of(secret)})
    chief = builders.user(f"{reader}-chief", is_staff=True, is_superuser=True)
    administrator = Client()
    administrator.force_login(chief)
    as_confirmed(administrator, chief)
    factor = Authenticator.objects.get(user=reader, type="totp")
    page = f"/access/users/{reader.pk}/"
    for path in (page, f"{page}remove-factor/?factor={factor.pk}"):
        assert factor.data["secret"] not in administrator.get(path).content.decode()
    administrator.post(f"{page}remove-factor/", {"factor": factor.pk})
    assert not Authenticator.objects.filter(user=reader).exists(), (
        "the recovery codes go with the last factor"
    )
    assert not is_logged_in(browser), "the session may be of the person that found the phone"
