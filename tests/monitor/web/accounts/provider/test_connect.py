"""An identity is proven at each step that changes who can come in: connected, confirmed, disconnected."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AuditEvent, Identity
from monitor.models.role import UserRole
from monitor.web.accounts import provider_adapter, throttle
from monitor.web.accounts.environment import AUTH_TIME, LOGIN
from tests.monitor.web.accounts.logins import add_app, confirm, is_logged_in, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.pages import builders

Browsers = Callable[[], Client]
CONNECT, CONFIRM, APP = "/account/connect/", "/account/confirm/provider/", "/account/app/"


def leads_to(page: Any) -> str:
    """Return the address to which a page of ours leads on."""
    assert page.status_code == 200, page.get("Location")
    [url] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    return unescape(url)


def connect(op: OpenIdProvider, browser: Client) -> Any:
    return browser.get(op.authorize(leads_to(browser.post(CONNECT))))


def confirm_there(op: OpenIdProvider, browser: Client, next_path: str = APP) -> Any:
    return browser.get(op.authorize(leads_to(browser.post(CONFIRM, {"next": next_path}))))


@pytest.fixture
def own(reader: User, browser: Client) -> Client:
    """A browser in which a local user with a role is logged in."""
    roles.grant(reader, Grant(UserRole.OPERATOR))
    log_in(browser, reader)
    return browser


@pytest.fixture
def by_provider(op: OpenIdProvider, browser: Client) -> Client:
    """A browser in which a user is logged in whose account has no password."""
    op.log_in(browser)
    assert is_logged_in(browser)
    return browser


def confirms(settings: Settings, way: str) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = replace(settings.GRIDCAST_IDENTITY_PROVIDER, confirm=way)


# Connecting.


def test_a_link_connects_nothing(own: Client, op: OpenIdProvider) -> None:
    confirm(own)
    page = own.get(CONNECT)
    assert "http-equiv" not in page.content.decode()
    assert own.get("/account/connect/start/").status_code == 404
    forged = Client(enforce_csrf_checks=True)
    forged.cookies = own.cookies
    assert forged.post(CONNECT).status_code == 403


def test_connecting_asks_for_confirmation_first(own: Client, op: OpenIdProvider) -> None:
    assert own.get(CONNECT)["Location"].startswith("/account/confirm/password/")
    assert own.post(CONNECT)["Location"].startswith("/account/confirm/password/")
    confirm(own)
    assert connect(op, own)["Location"] == "/account/"
    identity = Identity.objects.get()
    assert (identity.subject, identity.is_verified) == (op.claims["sub"], True)
    assert op.claims["sub"] in own.get("/account/").content.decode()
    assert AuditEvent.objects.filter(changes__contains=[{"kind": "identity", "after": "connected"}]).exists()


def test_a_confirmation_that_is_over_connects_nothing(own: Client, op: OpenIdProvider) -> None:
    confirm(own)
    url = leads_to(own.post(CONNECT))
    session = own.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 301
    session.save()
    page = own.get(op.authorize(url))
    assert (page.status_code, "Not connected" in page.content.decode()) == (403, True)
    assert not Identity.objects.exists()


def test_another_user_of_the_browser_does_not_end_what_one_began(
    own: Client, op: OpenIdProvider, reader: User
) -> None:
    confirm(own)
    url = leads_to(own.post(CONNECT))
    other = builders.user(f"{reader}-other", password=builders.PASSWORD)
    session = dict(own.session)
    own.force_login(other)
    kept = own.session
    kept.update({key: value for key, value in session.items() if key.startswith("socialaccount")})
    kept.save()
    assert own.get(op.authorize(url)).status_code == 403
    assert not Identity.objects.exists()


def test_an_account_has_one_identity_unless_an_operator_permits_more(
    own: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirm(own)
    connect(op, own)
    assert own.post(CONNECT)["Location"] == "/account/"
    assert "has 1 of at most 1" in own.get("/account/").content.decode()
    settings.GRIDCAST_IDENTITY_PROVIDER = replace(settings.GRIDCAST_IDENTITY_PROVIDER, most_identities=2)
    op.claims["sub"] = f"{op.claims['sub']}-second"
    connect(op, own)
    assert Identity.objects.count() == 2


def test_two_begun_at_once_connect_one(own: Client, op: OpenIdProvider) -> None:
    confirm(own)
    urls = [leads_to(own.post(CONNECT)) for _ in range(2)]
    assert own.get(op.authorize(urls[0]))["Location"] == "/account/"
    op.claims["sub"] = f"{op.claims['sub']}-second"
    assert own.get(op.authorize(urls[1])).status_code == 403
    assert Identity.objects.count() == 1


# Confirming.


def test_an_account_without_a_password_is_not_confirmed_by_that(by_provider: Client) -> None:
    page = by_provider.get(APP)
    assert (page.status_code, "Cannot confirm that it is you" in page.content.decode()) == (403, True)
    assert by_provider.get(CONFIRM).status_code == 403, "GRIDCAST_OIDC_CONFIRM is not set"


@pytest.mark.parametrize(
    ("age_seconds", "is_accepted"),
    [(0, True), (290, True), (302, False), (-50, True), (-90, False), (None, False)],
)
def test_the_time_of_the_login_there_decides(
    age_seconds: float | None, is_accepted: bool, by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, AUTH_TIME)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM)
    url = leads_to(by_provider.post(CONFIRM, {"next": APP}))
    assert "max_age=300" in url
    if age_seconds is not None:
        op.claims["auth_time"] = int(time.time() - age_seconds)
    answer = by_provider.get(op.authorize(url))
    assert (answer.status_code == 302) == is_accepted
    assert (by_provider.get(APP).status_code == 200) == is_accepted
    if not is_accepted:
        assert "within the last five minutes" in answer.content.decode()


def test_a_login_that_is_begun_for_it_confirms(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, LOGIN)
    url = leads_to(by_provider.post(CONFIRM, {"next": APP}))
    assert "prompt=login" in url
    assert by_provider.get(op.authorize(url))["Location"] == APP
    assert by_provider.get(APP).status_code == 200
    by_provider.post("/logout/")
    op.log_in(by_provider)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM), "a plain login confirms nothing"


def test_an_existing_second_factor_is_asked_where_the_provider_says_no_time(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, LOGIN)
    confirm_there(op, by_provider)
    add_app(by_provider)
    session = by_provider.session
    session["account_authentication_methods"] = []
    session.save()
    assert by_provider.get("/account/app/remove/")["Location"].startswith("/account/confirm/code/")
    confirms(settings, AUTH_TIME)
    assert (
        "Log in again at the identity provider" in by_provider.get("/account/confirm/code/").content.decode()
    )


def test_a_login_of_another_account_confirms_nothing(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, LOGIN)
    url = leads_to(by_provider.post(CONFIRM, {"next": APP}))
    op.claims |= {"sub": f"{op.claims['sub']}-other", "preferred_username": "another"}
    answer = by_provider.get(op.authorize(url))
    assert (answer.status_code, "with another account" in answer.content.decode()) == (403, True)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM)
    assert not User.objects.filter(username="another").exists()


def test_an_old_password_does_not_confirm(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    user = User.objects.get(username=op.claims["preferred_username"])
    user.set_password(builders.PASSWORD)
    user.save()
    confirms(settings, LOGIN)
    op.log_in(by_provider)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM)
    confirm(by_provider)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM)


# Disconnecting.


def test_an_identity_is_disconnected_by_its_user(own: Client, op: OpenIdProvider, reader: User) -> None:
    confirm(own)
    connect(op, own)
    page = f"/account/identities/{Identity.objects.get().pk}/disconnect/"
    assert op.claims["sub"] in own.get(page).content.decode()
    own.post(page)
    assert not Identity.objects.exists()
    assert not is_logged_in(own)
    log_in(own, reader)
    assert is_logged_in(own)


def test_the_last_door_is_not_disconnected(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, LOGIN)
    confirm_there(op, by_provider)
    page = by_provider.post(f"/account/identities/{Identity.objects.get().pk}/disconnect/")
    assert (page.status_code, "could not log in any more" in page.content.decode()) == (409, True)
    assert Identity.objects.exists()


def test_an_identity_of_another_user_is_not_disconnected(
    own: Client, op: OpenIdProvider, browser_elsewhere: Browsers
) -> None:
    op.log_in(browser_elsewhere())
    confirm(own)
    assert own.post(f"/account/identities/{Identity.objects.get().pk}/disconnect/").status_code == 404
    assert Identity.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_same", [True, False])
def test_two_that_come_back_at_once_connect_one(
    is_same: bool, own: Client, op: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirm(own)
    urls = [leads_to(own.post(CONNECT)) for _ in range(2)]
    paths = [op.authorize(url) for url in urls]
    subjects = itertools.cycle([op.claims["sub"], op.claims["sub"] if is_same else f"{op.claims['sub']}-2"])
    op.changes["id_token"] = lambda claims: {**claims, "sub": next(subjects)}
    both_are_back, has_room, codes = threading.Barrier(2), provider_adapter._has_room, []

    def asked_together(user: User, account: SocialAccount) -> bool:
        both_are_back.wait(60)
        return has_room(user, account)

    def come_back(path: str) -> None:
        browser = Client(raise_request_exception=False)
        browser.cookies = own.cookies
        codes.append(browser.get(path).status_code)
        connection.close()

    monkeypatch.setattr(provider_adapter, "_has_room", asked_together)
    threads = [threading.Thread(target=come_back, args=[path]) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [302, 403]
    assert Identity.objects.count() == 1


# The limit of starts.


def starts(browser: Client) -> int:
    """Forget the starts that the address of *browser* has used up; return their number."""
    [number] = throttle.limits().forget([(throttle.START, str(browser.defaults["REMOTE_ADDR"]))])
    return number


def test_a_connection_uses_up_no_start_of_its_address(own: Client, op: OpenIdProvider) -> None:
    confirm(own)
    starts(own)
    assert connect(op, own)["Location"] == "/account/"
    assert starts(own) == 0


def test_a_confirmation_uses_up_no_start_of_its_address(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, LOGIN)
    starts(by_provider)
    assert confirm_there(op, by_provider)["Location"] == APP
    assert starts(by_provider) == 0


def test_what_is_refused_after_its_start_uses_it_up(
    by_provider: Client, op: OpenIdProvider, settings: Settings
) -> None:
    confirms(settings, LOGIN)
    starts(by_provider)
    op.claims["sub"] = f"{op.claims['sub']}-other"
    assert confirm_there(op, by_provider).status_code == 403
    assert starts(by_provider) == 1
