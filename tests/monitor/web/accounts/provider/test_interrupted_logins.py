"""A change of the account between the last check of a login and its commit is no error, at any door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models.role import UserRole
from monitor.operations.web_server.proxies import ON_THIS_HOST
from monitor.web.accounts import login_stage, remote_user, users
from monitor.web.accounts.environment import RemoteUser
from tests.monitor.waiters import waiting
from tests.monitor.web.accounts.device import Device, login_options, options_of
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import as_confirmed, code_of, is_logged_in, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.accounts.provider.test_waiting_logins import give_app
from tests.monitor.web.pages import builders
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
Browsers = Callable[[], Client]
Step = Callable[[Client], Any]
STEP, HOST = "/login/second-factor/", "localhost"


def add_passkey(own: Client, user: User) -> Device:
    """Give *user* a passkey, which also logs in without the password."""
    device, page = Device(), "/account/passkeys/add/"
    own.force_login(user)
    credential = device.register(options_of(as_confirmed(own, user), page))
    own.post(page, {"name": "Key", "credential": credential, "passwordless": "on"})
    assert Authenticator.objects.filter(user=user, type="webauthn").exists()
    return device


def _password(own: Client, user: User, op: OpenIdProvider) -> Step:
    return lambda browser: log_in(browser, user)


def _passkey(own: Client, user: User, op: OpenIdProvider) -> Step:
    device = add_passkey(own, user)
    return lambda browser: browser.post(
        "/login/passkey/", {"credential": device.authenticate(login_options(browser))}
    )


def _app(own: Client, user: User, op: OpenIdProvider) -> Step:
    secret = give_app(user)

    def step(browser: Client) -> Any:
        assert log_in(browser, user)["Location"] == STEP
        return browser.post(STEP, {"code": code_of(secret)})

    return step


def _recovery_code(own: Client, user: User, op: OpenIdProvider) -> Step:
    give_app(user)
    code = RecoveryCodes.activate(user).get_unused_codes()[0]

    def step(browser: Client) -> Any:
        assert log_in(browser, user)["Location"] == STEP
        return browser.post(STEP, {"code": code})

    return step


def _second_passkey(own: Client, user: User, op: OpenIdProvider) -> Step:
    device = add_passkey(own, user)

    def step(browser: Client) -> Any:
        assert log_in(browser, user)["Location"] == STEP
        return browser.post(STEP, {"credential": device.authenticate(options_of(browser, STEP))})

    return step


def _provider(own: Client, user: User, op: OpenIdProvider) -> Step:
    identity_of(user, "viewer", issuer=op.issuer, subject=op.claims["sub"], is_verified=True)
    return op.log_in


def _provider_and_app(own: Client, user: User, op: OpenIdProvider) -> Step:
    identity_of(user, "viewer", issuer=op.issuer, subject=op.claims["sub"], is_verified=True)
    secret = give_app(user)

    def step(browser: Client) -> Any:
        assert op.log_in(browser)["Location"] == STEP
        return browser.post(STEP, {"code": code_of(secret)})

    return step


DOORS: Mapping[str, Callable[[Client, User, OpenIdProvider], Step]] = {
    "password": _password,
    "passkey": _passkey,
    "password and app": _app,
    "password and recovery code": _recovery_code,
    "password and passkey": _second_passkey,
    "provider": _provider,
    "provider and app": _provider_and_app,
}
EVENTS: Mapping[str, Callable[[User], object]] = {
    "deleted": users.delete,
    "disabled": users.disable,
    "new password": lambda user: users.set_password(user, "staple battery horse"),
    "sessions ended": users.end_sessions,
}


class Interruption:
    """An event in another transaction, which begins at a moment of a login, and may have to wait for it."""

    def __init__(self, event: Callable[[User], object], user: User) -> None:
        self._event, self._user = event, user
        self.errors: list[Exception] = []
        self.thread = Thread(target=self._act)

    def begin(self) -> None:
        self.thread.start()
        assert eventually(lambda: waiting() or not self.thread.is_alive())

    def _act(self) -> None:
        try:
            self._event(User.objects.get(pk=self._user.pk))
        except Exception as error:  # noqa: BLE001  # told by the test
            self.errors.append(error)
        finally:
            connections.close_all()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("door", DOORS)
def test_a_login_and_an_event_at_the_same_moment_come_one_after_the_other(
    door: str,
    event: str,
    reader: User,
    browser_elsewhere: Browsers,
    op: OpenIdProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builders.user(f"{reader}-chief", is_superuser=True)
    roles.grant(reader, Grant(UserRole.OPERATOR))
    own, browser = browser_elsewhere(), browser_elsewhere()
    for each in (own, browser):
        each.defaults["SERVER_NAME"] = HOST
    step = DOORS[door](own, reader, op)
    interruption = Interruption(EVENTS[event], reader)
    handle = login_stage.CompleteStage.handle

    def interrupted(self: login_stage.CompleteStage) -> object:
        answer = handle(self)
        interruption.begin()
        return answer

    monkeypatch.setattr(login_stage.CompleteStage, "handle", interrupted)
    browser.raise_request_exception = False
    answer = step(browser)
    interruption.thread.join(60)
    assert not interruption.thread.is_alive()
    assert interruption.errors == []
    assert answer.status_code < 500
    assert not is_logged_in(browser)
    if event == "deleted":
        assert not User.objects.filter(pk=reader.pk).exists()
        assert not Session.objects.filter(session_key=browser.cookies["sessionid"].value).exists()


@pytest.mark.parametrize("event", EVENTS)
def test_a_user_that_a_proxy_names_is_read_once(
    event: str, reader: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is of before the event, and the next one of after it."""
    builders.user(f"{reader}-chief", is_superuser=True)
    settings.GRIDCAST_PROXIES = ON_THIS_HOST
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", ON_THIS_HOST, "")
    named = remote_user.RemoteUserMiddleware._user
    interruption = Interruption(EVENTS[event], reader)

    def interrupted(self: remote_user.RemoteUserMiddleware, *arguments: Any) -> User:
        user = named(self, *arguments)
        interruption.begin()
        return user

    monkeypatch.setattr(remote_user.RemoteUserMiddleware, "_user", interrupted)
    browser = Client(headers={"remote-user": str(reader)}, raise_request_exception=False)
    assert browser.get("/account/").status_code == 200
    interruption.thread.join(60)
    assert interruption.errors == []
    monkeypatch.setattr(remote_user.RemoteUserMiddleware, "_user", named)
    is_gone = event in {"deleted", "disabled"}
    assert browser.get("/account/").status_code == (403 if is_gone else 200)
