"""Logins, confirmations and logouts at a certified provider, which tests what gridcast sends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from monitor.depot.access.roles import Grant, grant, present_grants, usual_identity
from monitor.models import Identity
from monitor.models.role import UserRole, act_as
from monitor.web.accounts.environment import AUTH_TIME, LOGIN
from tests.monitor.web.accounts.logins import confirm, is_logged_in, log_in
from tests.monitor.web.accounts.provider.certified.certified_provider import (
    ALGORITHMS,
    CertifiedProvider,
    ProviderBrowser,
)
from tests.monitor.web.accounts.provider.certified.fault_proxy import with_members

Browsers = Callable[[], Client]
DISCOVERY = "/.well-known/openid-configuration"
CONNECT, CONFIRM, APP = "/account/connect/", "/account/confirm/provider/", "/account/app/"
LOGOUT_TOKENS = "/login/sso/backchannel-logout/"
FORM = "application/x-www-form-urlencoded"


def configure(settings: Settings, **fields: Any) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = replace(settings.GRIDCAST_IDENTITY_PROVIDER, **fields)


def leads_to(page: Any) -> str:
    """Return the address to which a page of ours leads on."""
    assert page.status_code == 200, page.get("Location")
    [url] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    return unescape(url)


def account_of(there: ProviderBrowser) -> User:
    return Identity.objects.get(subject=there.subject).user


def roles(there: ProviderBrowser) -> list[str]:
    """Return the roles of a session of the user that begins at the provider."""
    user = account_of(there)
    act_as(user, usual_identity(user))
    return [str(each) for each in present_grants(user)]


@pytest.fixture
def own(reader: User, browser: Client) -> Client:
    """A browser in which a local user with a role is logged in, and has confirmed."""
    grant(reader, Grant(UserRole.OPERATOR))
    log_in(browser, reader)
    confirm(browser)
    return browser


@pytest.fixture
def by_provider(there: ProviderBrowser, browser: Client) -> Client:
    """A browser in which a user is logged in whose account has no password."""
    assert there.log_in(browser).status_code == 302
    assert is_logged_in(browser)
    return browser


def test_a_login_makes_an_account_with_what_the_provider_says(
    browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    person = {"preferred_username": "ada", "given_name": "Ada", "family_name": "King"}
    certified.knows(there.subject, **person, email="ada@example.org", groups=["/grid/users", "/grid/chess"])
    assert there.log_in(browser, "/login/sso/?next=/alerts/")["Location"] == "/alerts/"
    assert is_logged_in(browser)
    user = User.objects.get(username="ada")
    assert (user.first_name, user.last_name, user.email) == ("Ada", "King", "ada@example.org")
    assert roles(there) == ["viewer"]


def test_a_second_login_follows_the_groups_and_the_provider_asks_nothing(
    browser_elsewhere: Browsers, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    there.log_in(browser_elsewhere())
    certified.knows(there.subject, preferred_username="another name", groups=["/grid/ops"])
    assert there.log_in(browser_elsewhere()).status_code == 302
    assert (roles(there), there.prompts) == (["operator"], 1)
    assert User.objects.count() == 1


def test_a_user_whose_groups_vanish_is_suspended_until_they_return(
    browser_elsewhere: Browsers, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    before = browser_elsewhere()
    there.log_in(before)
    certified.knows(there.subject, groups=[])
    answer = there.log_in(browser_elsewhere())
    assert (answer.status_code, "none of your groups" in answer.content.decode()) == (403, True)
    assert Identity.objects.get().suspended == "Grid Login named no group with a role"
    assert not is_logged_in(before)
    certified.knows(there.subject, groups=["/grid/users"])
    there.log_in(before)
    assert is_logged_in(before)
    assert Identity.objects.get().suspended == ""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_signed_by_each_public_key_are_accepted_and_by_a_shared_secret_refused(
    algorithm: str, browser: Client, there: ProviderBrowser, settings: Settings
) -> None:
    configure(settings, client_id=algorithm)
    answer = there.log_in(browser)
    assert answer.status_code == (502 if algorithm == "HS256" else 302)
    assert is_logged_in(browser) == (algorithm != "HS256")


@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"], None])
def test_the_client_is_authenticated_as_the_provider_announces(
    methods: list[str] | None, browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    certified.proxy.faults[DISCOVERY] = with_members(token_endpoint_auth_methods_supported=methods)
    there.log_in(browser)
    assert is_logged_in(browser)


def test_a_user_that_cancels_there_is_told_so(browser: Client, there: ProviderBrowser) -> None:
    there.is_cancelling = True
    answer = there.log_in(browser)
    assert (answer.status_code, "Login cancelled" in answer.content.decode()) == (401, True)


def test_a_refused_user_chooses_another_account_there(
    browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    refused = there.subject
    certified.knows(refused, groups=["/grid/chess"])
    assert "?choose=1" in there.log_in(browser).content.decode()
    there.subject = f"{refused}-other"
    certified.knows(there.subject, groups=["/grid/users"])
    answer = there.log_in(browser, "/login/sso/?choose=1")
    assert answer["Location"] == "/login/sso/?choose=login", "this provider knows no choice of accounts"
    there.log_in(browser, answer["Location"])
    assert is_logged_in(browser)
    assert (account_of(there).is_active, there.prompts) == (True, 2)


@pytest.mark.parametrize(("amr", "counts"), [(["pwd"], False), (["pwd", "mfa"], True)], ids=str)
def test_a_second_factor_there_counts_by_its_claim(
    amr: list[str], counts: bool, browser: Client, there: ProviderBrowser, settings: Settings
) -> None:
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset({"viewer"})
    settings.GRIDCAST_SECOND_FACTOR_DAYS = 0
    settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES = frozenset({"mfa"})
    there.login = {"amr": amr}
    there.log_in(browser)
    assert (browser.get("/series/").status_code == 200) == counts


def test_a_local_user_connects_the_own_identity(
    own: Client, browser_elsewhere: Browsers, reader: User, there: ProviderBrowser
) -> None:
    assert own.get(there.authorize(leads_to(own.post(CONNECT))))["Location"] == "/account/"
    assert account_of(there) == reader
    other = browser_elsewhere()
    there.log_in(other)
    assert is_logged_in(other)
    assert there.prompts == 1


def test_a_login_that_is_begun_for_it_confirms_and_the_provider_asks(
    by_provider: Client, there: ProviderBrowser, settings: Settings
) -> None:
    configure(settings, confirm=LOGIN)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM)
    url = leads_to(by_provider.post(CONFIRM, {"next": APP}))
    assert by_provider.get(there.authorize(url))["Location"] == APP
    assert there.prompts == 2
    assert by_provider.get(APP).status_code == 200


@pytest.mark.parametrize(
    ("ages", "prompts", "is_accepted"),
    [([0], 1, True), ([400, 0], 2, True), ([400, 400], 2, False)],
    ids=["recent", "old", "old again"],
)
def test_the_time_of_the_login_there_confirms(
    ages: list[int],
    prompts: int,
    is_accepted: bool,
    browser: Client,
    there: ProviderBrowser,
    settings: Settings,
) -> None:
    configure(settings, confirm=AUTH_TIME)
    there.login = {"ts": int(time.time()) - ages[0]}
    there.log_in(browser)
    there.login = {"ts": int(time.time()) - ages[-1]}
    answer = browser.get(there.authorize(leads_to(browser.post(CONFIRM, {"next": APP}))))
    assert there.prompts == prompts
    assert (answer.status_code == 302) == is_accepted
    assert (browser.get(APP).status_code == 200) == is_accepted
    assert ("within the last five minutes" in answer.content.decode()) != is_accepted


def test_a_login_of_another_user_there_confirms_nothing(
    by_provider: Client, certified: CertifiedProvider, there: ProviderBrowser, settings: Settings
) -> None:
    configure(settings, confirm=LOGIN)
    there.subject = f"{there.subject}-other"
    certified.knows(there.subject, groups=["/grid/users"])
    answer = by_provider.get(there.authorize(leads_to(by_provider.post(CONFIRM, {"next": APP}))))
    assert (answer.status_code, "with another account" in answer.content.decode()) == (403, True)
    assert by_provider.get(APP)["Location"].startswith(CONFIRM)


def end_session_url(browser: Client) -> str:
    """Log out here; return the address at which the page offers the logout there."""
    page = browser.post("/logout/").content.decode()
    [url] = re.findall(r'href="(http://127[^"]+)"', page)
    return unescape(url)


def test_a_logout_here_leads_to_the_logout_there_and_back(
    by_provider: Client, there: ProviderBrowser
) -> None:
    url = end_session_url(by_provider)
    assert not is_logged_in(by_provider)
    assert there.log_out(url).startswith("/login/")
    there.log_in(by_provider)
    assert is_logged_in(by_provider)
    assert there.prompts == 2, "the session there has ended, too"


def test_a_logout_there_ends_the_sessions_here_once(
    browser_elsewhere: Browsers, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    first, second, anonymous = (browser_elsewhere() for _ in range(3))
    there.log_in(first)
    there.log_in(second)
    there.log_out(end_session_url(first))
    [body] = certified.proxy.received
    tampered = body[:-5] + (b"AAAAA" if body[-5:] != b"AAAAA" else b"BBBBB")
    assert anonymous.post(LOGOUT_TOKENS, tampered, content_type=FORM).status_code == 400
    assert is_logged_in(second)
    assert anonymous.post(LOGOUT_TOKENS, body, content_type=FORM).status_code == 200
    assert not is_logged_in(second)
    assert Identity.objects.get().suspended.startswith("logged out at ")
    there.log_in(second)
    assert is_logged_in(second)
    assert anonymous.post(LOGOUT_TOKENS, body, content_type=FORM).status_code == 400
    assert is_logged_in(second)
