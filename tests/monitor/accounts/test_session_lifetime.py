"""A session ends at a fixed time after its login."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from monitor.accounts.session_store import ENDS_AT
from tests.monitor.accounts.logins import add_app, is_logged_in, log_in

pytestmark = pytest.mark.django_db


def end(browser: Client, at: datetime) -> None:
    session = browser.session
    session[ENDS_AT] = at.isoformat()
    session.save()


def ends_at(browser: Client) -> datetime:
    return Session.objects.get(session_key=browser.session.session_key).expire_date


def test_a_login_begins_a_lifetime(browser: Client, reader: User) -> None:
    before = timezone.now()
    log_in(browser, reader)
    lifetime = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    assert before + lifetime <= ends_at(browser) <= timezone.now() + lifetime


def test_no_change_prolongs_a_session(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    in_an_hour = timezone.now() + timedelta(hours=1)
    end(browser, in_an_hour)
    add_app(browser)
    assert ends_at(browser) == in_an_hour
    assert browser.cookies["sessionid"]["max-age"] <= 3601
    assert is_logged_in(browser)


def test_a_new_password_does_not_prolong_the_session(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    in_an_hour = timezone.now() + timedelta(hours=1)
    end(browser, in_an_hour)
    new = "another correct horse"
    form = {"old_password": "correct horse battery", "new_password1": new, "new_password2": new}
    assert browser.post("/account/password/", form).status_code == 302
    assert (is_logged_in(browser), ends_at(browser)) == (True, in_an_hour)


def test_a_session_that_has_ended_is_over(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    end(browser, timezone.now() - timedelta(seconds=1))
    assert not is_logged_in(browser)
