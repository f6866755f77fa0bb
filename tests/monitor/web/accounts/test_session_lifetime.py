"""A session ends at a fixed time after its login."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import DataError, connection
from django.test import Client
from django.utils import timezone

from monitor.web.accounts.session_store import ENDS_AT
from tests.monitor.web.accounts.logins import add_app, confirm, is_logged_in, log_in

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


def _saving(refused_by: type[Exception] | None) -> Callable[..., Any]:
    """Delete all sessions just before one is saved; with *refused_by*, refuse to save it."""

    def execute(call: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('UPDATE "django_session"'):
            if refused_by is not None:
                raise refused_by("planted")
            Session.objects.all().delete()
        return call(sql, params, many, context)

    return execute


def test_a_page_whose_session_ends_meanwhile_leads_to_the_login(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    with connection.execute_wrapper(_saving(None)):
        opened = browser.get("/account/app/")  # it stores the key of the app in the session
    assert (opened.status_code, opened["Location"]) == (302, "/login/?next=/account/app/")


def test_a_session_that_the_database_does_not_store_has_not_ended(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    browser.raise_request_exception = False
    with connection.execute_wrapper(_saving(DataError)):
        answer = browser.get("/account/app/")
    assert (answer.status_code, "could not be computed" in answer.content.decode()) == (500, True)
    assert is_logged_in(browser)
