"""Each account confirms in the ways that it is offered, and in no other, however its page is reached."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as RECORDS_KEY
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import Identity, SecondFactorTerm, UserRole
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts.confirmation import AT_PROVIDER, CODE, PASSKEY, PASSWORD
from monitor.web.accounts.environment import AUTH_TIME, LOGIN, RemoteUser
from monitor.web.pages.http.confirmed import CONFIRMS_BY
from tests.monitor.web.accounts.device import Device, options_of
from tests.monitor.web.accounts.logins import add_app, as_confirmed, code_of, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.accounts.provider.test_connect import leads_to
from tests.monitor.web.pages import builders

CHANGE = "/account/passkeys/add/"  # a page that asks for a confirmation, and opens to any account
DUE = "/account/second-factor/"


def pages_that_confirm() -> Mapping[str, str]:
    """Return the path of each page on which users confirm, by its way."""

    def patterns(found: Iterable[URLPattern | URLResolver]) -> Iterator[URLPattern]:
        for each in found:
            if isinstance(each, URLPattern):
                yield each
            else:
                yield from patterns(each.url_patterns)

    marked = [each for each in patterns(get_resolver().url_patterns) if hasattr(each.callback, CONFIRMS_BY)]
    return {getattr(each.callback, CONFIRMS_BY): f"/{each.pattern}" for each in marked}


@dataclass
class Owner:
    """The owner of an account in a browser, with all that may prove who it is."""

    op: OpenIdProvider
    browser: Client
    user: User
    secret: str = ""
    device: Device | None = None

    def confirms(self, way: str) -> bool:
        """Try to confirm by *way* at its page, offered or not; return whether that opens the change."""
        session = self.browser.session
        session[RECORDS_KEY] = []
        session.save()
        PROOFS[way](self)
        return self.browser.get(CHANGE).status_code == 200

    def send(self, way: str, **fields: str) -> Any:
        return self.browser.post(pages_that_confirm()[way], {"next": CHANGE, **fields})


def _at_provider(owner: Owner) -> None:
    owner.op.claims["auth_time"] = int(time.time())
    page = owner.send(AT_PROVIDER)
    if page.status_code == 200:
        owner.browser.get(owner.op.authorize(leads_to(page)))


def _by_password(owner: Owner) -> None:
    owner.send(PASSWORD, password=builders.PASSWORD)


def _by_code(owner: Owner) -> None:
    """Enter a code of the app; of an account without one, a recovery code."""
    stored = Authenticator.objects.filter(user=owner.user, type="recovery_codes").first()
    recovery_code = stored.wrap().get_unused_codes()[0] if stored else "12345678"
    owner.send(CODE, code=code_of(owner.secret) if owner.secret else recovery_code)


def _by_passkey(owner: Owner) -> None:
    page = pages_that_confirm()[PASSKEY]
    if owner.device is not None:
        options = options_of(owner.browser, page)
        owner.send(PASSKEY, credential=owner.device.authenticate(options))
    else:
        owner.send(PASSKEY, credential="{}")


PROOFS: Mapping[str, Callable[[Owner], None]] = {
    PASSWORD: _by_password,
    CODE: _by_code,
    PASSKEY: _by_passkey,
    AT_PROVIDER: _at_provider,
}


def _with_app(owner: Owner) -> None:
    owner.secret = add_app(as_confirmed(owner.browser, owner.user))


def _with_passkey(owner: Owner) -> None:
    owner.device = Device()
    answer = owner.device.register(options_of(as_confirmed(owner.browser, owner.user), CHANGE))
    assert owner.browser.post(CHANGE, {"name": "Key", "credential": answer}).status_code == 302


def _by_login_there(owner: Owner) -> None:
    owner.op.log_in(owner.browser)
    owner.user = User.objects.get(username=owner.op.claims["preferred_username"])


def _by_login_there_with_app(owner: Owner) -> None:
    _by_login_there(owner)
    _with_app(owner)


def _local(owner: Owner) -> None:
    log_in(owner.browser, owner.user)


def _local_with_app(owner: Owner) -> None:
    _local(owner)
    _with_app(owner)


def _local_with_passkey(owner: Owner) -> None:
    _local(owner)
    _with_passkey(owner)


def _with_app_alone(owner: Owner) -> None:
    User.objects.filter(pk=owner.user.pk).update(password="!")
    owner.browser.force_login(User.objects.get(pk=owner.user.pk))
    _with_app(owner)


def _of_both(owner: Owner) -> None:
    """An old account of the provider, to which a role was granted here; its session is by password."""
    _by_login_there(owner)
    roles.grant(owner.user, Grant(UserRole.VIEWER))
    owner.user.set_password(builders.PASSWORD)
    owner.user.save()
    owner.browser.post("/logout/")
    log_in(owner.browser, owner.user)


def _of_both_with_app(owner: Owner) -> None:
    _of_both(owner)
    _with_app(owner)


def _by_proxy(owner: Owner) -> None:
    log_in(owner.browser, owner.user)
    owner.browser.defaults |= {"REMOTE_ADDR": "192.0.2.7", "HTTP_REMOTE_USER": str(owner.user)}


def _by_proxy_with_app(owner: Owner) -> None:
    _local_with_app(owner)
    owner.browser.defaults |= {"REMOTE_ADDR": "192.0.2.7", "HTTP_REMOTE_USER": str(owner.user)}


@dataclass(frozen=True)
class Account:
    """How its owner comes in; the ways here; and whether it confirms there, by what ``GRIDCAST_OIDC_CONFIRM``
    says.
    """

    comes_in: Callable[[Owner], None]
    here: set[str]
    there: set[str]


NEVER, EITHER, BY_TIME = set[str](), {AUTH_TIME, LOGIN}, {AUTH_TIME}
ACCOUNTS: Mapping[str, Account] = {
    "password": Account(_local, {PASSWORD}, NEVER),
    "app": Account(_with_app_alone, {CODE}, NEVER),
    "password and app": Account(_local_with_app, {PASSWORD, CODE}, NEVER),
    "password and passkey": Account(_local_with_passkey, {PASSWORD, CODE, PASSKEY}, NEVER),
    "provider": Account(_by_login_there, set(), EITHER),
    "provider and app": Account(_by_login_there_with_app, {CODE}, BY_TIME),
    "both": Account(_of_both, {PASSWORD}, EITHER),
    "both and app": Account(_of_both_with_app, {PASSWORD, CODE}, BY_TIME),
    "proxy": Account(_by_proxy, {PASSWORD}, NEVER),
    "proxy and app": Account(_by_proxy_with_app, {PASSWORD, CODE}, NEVER),
}


@pytest.fixture
def owner(op: OpenIdProvider, browser: Client, reader: User, settings: Settings) -> Owner:
    settings.GRIDCAST_PROXIES = Proxies((ipaddress.ip_network("192.0.2.0/24"),), is_unix=False)
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", settings.GRIDCAST_PROXIES, "")
    browser.defaults["SERVER_NAME"] = "localhost"  # passkeys need a name
    return Owner(op, browser, reader)


def says(settings: Settings, confirm: str) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = replace(settings.GRIDCAST_IDENTITY_PROVIDER, confirm=confirm)


def test_the_table_has_each_way_and_each_page() -> None:
    pages = pages_that_confirm()
    assert set(PROOFS) == set(pages)
    below = "account/confirm/"
    assert {path for path in pages.values() if below not in path} == set()
    routes = {str(each.pattern) for each in get_resolver().url_patterns if isinstance(each, URLPattern)}
    assert {f"/{route}" for route in routes if route.startswith(below)} <= set(pages.values())


@pytest.mark.parametrize("confirm", ["", AUTH_TIME, LOGIN])
@pytest.mark.parametrize("account", ACCOUNTS)
def test_an_account_confirms_in_the_ways_that_it_is_offered_and_in_no_other(
    account: str, confirm: str, owner: Owner, settings: Settings
) -> None:
    row = ACCOUNTS[account]
    row.comes_in(owner)
    says(settings, confirm)
    offered = row.here | ({AT_PROVIDER} if confirm in row.there else set())
    as_confirmed(owner.browser, owner.user, seconds_ago=301)
    opened = {way for way, page in pages_that_confirm().items() if owner.browser.get(page).status_code == 200}
    assert opened == offered
    assert {way for way in PROOFS if owner.confirms(way)} == offered


@pytest.mark.parametrize("account", ["provider and app", "both and app"])
def test_an_account_with_a_factor_here_is_led_to_it_from_the_provider(
    account: str, owner: Owner, settings: Settings
) -> None:
    ACCOUNTS[account].comes_in(owner)
    says(settings, LOGIN)
    as_confirmed(owner.browser, owner.user, seconds_ago=301)
    page = f"{pages_that_confirm()[AT_PROVIDER]}?{urlencode({'next': CHANGE})}"
    for method in (owner.browser.get, owner.browser.post):
        leads = method(page)["Location"]
        assert leads.startswith(("/account/confirm/code/", "/account/confirm/password/"))
        assert leads.endswith(urlencode({"next": CHANGE}))


def _factor_added(user: User, settings: Settings) -> None:
    Authenticator.objects.bulk_create([Authenticator(user=user, type="totp", data={"secret": "x"})])


def _not_set_any_more(user: User, settings: Settings) -> None:
    says(settings, "")


@pytest.mark.parametrize("change", [_factor_added, _not_set_any_more])
def test_a_way_that_ends_while_the_user_is_at_the_provider_confirms_nothing(
    change: Callable[[User, Settings], None], owner: Owner, settings: Settings
) -> None:
    _by_login_there(owner)
    says(settings, LOGIN)
    there = leads_to(owner.send(AT_PROVIDER))
    change(owner.user, settings)
    answer = owner.browser.get(owner.op.authorize(there))
    assert (answer.status_code, "does not confirm for your account" in answer.content.decode()) == (403, True)
    assert owner.browser.get(CHANGE).status_code != 200


@pytest.mark.parametrize("way", PROOFS)
def test_a_user_whose_term_for_a_second_factor_is_over_confirms_in_each_way(
    way: str, owner: Owner, settings: Settings
) -> None:
    """A factor ends the duty, unless it is removed between: each page that confirms opens all the same."""
    _of_both(owner)
    says(settings, AUTH_TIME)
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset({"viewer"})
    began_at = timezone.now() - timedelta(days=20)
    SecondFactorTerm.objects.update_or_create(user=owner.user, defaults={"began_at": began_at})
    assert owner.browser.get("/account/")["Location"] == DUE
    page = pages_that_confirm()[way]
    for method in (owner.browser.get, owner.browser.post):
        answer = method(page)
        assert (answer.status_code, answer.headers.get("Location", "")) != (302, DUE)
        assert answer.status_code != 403
    if way in {PASSWORD, AT_PROVIDER}:
        assert owner.confirms(way)
        owner.secret = add_app(owner.browser)
        assert owner.browser.get("/account/").status_code == 200


def test_an_account_of_the_provider_alone_adds_the_factor_that_is_due(
    owner: Owner, settings: Settings
) -> None:
    _by_login_there(owner)
    says(settings, AUTH_TIME)
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset({"viewer"})
    settings.GRIDCAST_SECOND_FACTOR_DAYS = 0
    Identity.objects.update(roles=["viewer"])
    assert owner.browser.get("/account/")["Location"] == DUE
    assert owner.browser.get("/account/app/")["Location"].startswith(pages_that_confirm()[AT_PROVIDER])
    assert owner.confirms(AT_PROVIDER)
    add_app(owner.browser)
    assert owner.browser.get("/account/").status_code == 200
