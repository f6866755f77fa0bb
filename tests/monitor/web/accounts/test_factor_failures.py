"""A second factor that fails after a right password is told to the user of the account."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.web.accounts import mail
from tests.monitor.web.accounts.logins import add_app, code_of, log_in

pytestmark = pytest.mark.django_db
Browsers = Callable[[], Client]
STEP, WORDS = "/login/second-factor/", "Your password was right and the second factor was not"


def failed(browser: Client, user: User, times: int) -> None:
    log_in(browser, user)
    for _ in range(times):
        browser.post(STEP, {"code": "000000"})


def test_the_next_login_tells_of_it_once(browser_elsewhere: Browsers, reader: User) -> None:
    own = browser_elsewhere()
    log_in(own, reader)
    secret = add_app(own)
    other = browser_elsewhere()
    failed(other, reader, 2)
    again = browser_elsewhere()
    log_in(again, reader)
    again.post(STEP, {"code": code_of(secret)})
    page = again.get("/account/").content.decode()
    assert f"{WORDS}, 2 times since your last login" in page
    assert str(other.defaults["REMOTE_ADDR"]) in page
    assert WORDS not in again.get("/account/").content.decode()


def test_a_mail_is_sent_once_an_hour(
    browser_elsewhere: Browsers, reader: User, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.EMAIL_HOST = "mail.example.org"  # pytest-django's mailbox takes its place
    User.objects.filter(pk=reader.pk).update(email="ada@example.org")
    own = browser_elsewhere()
    log_in(own, reader)
    add_app(own)
    failed(browser_elsewhere(), reader, 3)
    mail.deliver_due(timezone.now())
    [sent] = mailoutbox
    assert (sent.to, "the second factor was not" in sent.body) == (["ada@example.org"], True)


def test_a_wrong_code_of_a_confirmation_is_no_such_failure(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    add_app(browser)
    browser.post("/account/confirm/code/", {"code": "000000"})
    assert WORDS not in browser.get("/account/").content.decode()


def test_a_wrong_password_is_no_such_failure(browser_elsewhere: Browsers, reader: User) -> None:
    own = browser_elsewhere()
    log_in(own, reader)
    secret = add_app(own)
    log_in(browser_elsewhere(), reader, "wrong")
    again = browser_elsewhere()
    log_in(again, reader)
    again.post(STEP, {"code": code_of(secret)})
    assert WORDS not in again.get("/account/").content.decode()
