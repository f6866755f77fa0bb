"""The lines of the log say in words what was refused, and why."""

from __future__ import annotations

import ast
import inspect

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.web.accounts import events, provider_adapter
from tests.monitor.web.accounts.logins import is_logged_in, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == events.__name__]


def test_a_right_password_of_a_disabled_account_is_logged_as_that(
    browser: Client, reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    User.objects.filter(pk=reader.pk).update(is_active=False)
    page = log_in(browser, reader)
    assert "Wrong user name or password" in page.content.decode(), "the page tells no stranger"
    assert lines(caplog)[-1].endswith(": the account is disabled")
    log_in(browser, reader, "another password")
    assert lines(caplog)[-1].endswith(": wrong name or password")


def test_a_wrong_password_of_a_user_that_is_logged_in_refuses_a_confirmation(
    browser: Client, reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    log_in(browser, reader)
    browser.post("/account/confirm/password/", {"password": "another password"})
    assert lines(caplog)[-1].startswith(f"confirmation refused: user '{reader}' from ")
    assert is_logged_in(browser)


def test_a_refused_logout_of_the_provider_is_no_login(
    browser: Client, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    assert browser.post("/login/sso/backchannel-logout/", {"logout_token": "x"}).status_code == 400
    assert lines(caplog)[-1].startswith("logout by the provider refused: from ")


def test_a_login_of_the_provider_without_a_role_is_refused_in_words(
    browser: Client, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    op.claims["groups"] = []
    op.log_in(browser)
    assert lines(caplog)[-1].endswith(": none of the groups that it named has a role here")
    assert "no_role" not in caplog.text


def test_each_refusal_after_a_login_at_the_provider_has_words() -> None:
    """A new reason needs an entry in ``PROVIDER_REFUSALS``."""
    calls = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(provider_adapter)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_refused"
    ]
    codes = {call.args[2].value for call in calls if isinstance(call.args[2], ast.Constant)}
    assert len(codes) >= 4
    assert codes | {"name_taken", "name_refused"} <= set(events.PROVIDER_REFUSALS)
