"""Logging in by an identity provider: a real one, over HTTP, whose groups give the roles."""

from __future__ import annotations

import itertools
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django import Settings

from monitor.depot.access.roles import Grant, grant, present_grants, usual_identity
from monitor.models import ApiToken, AuditEvent, Site
from monitor.models.role import UserRole, act_as
from monitor.web.accounts import events, group_roles, throttle
from monitor.web.accounts.environment import IdentityProvider, LocalLogin
from tests.monitor.web.accounts.logins import add_app, code_of, confirm, is_logged_in, log_in
from tests.monitor.web.pages import builders

# The provider runs in threads of this process and uses what its libraries call deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

Browsers = Callable[[], Client]
ROLES = (
    ("operator", "/grid/ops"),
    ("viewer", "grid-users"),
    ("administrator", "cn=admins,ou=grid"),
    ("site_admin:ncsa", "ncsa-staff"),
)
_numbers = itertools.count(1)


@dataclass
class Provider:
    """A running identity provider, with one user."""

    url: str
    subject: str
    name: str

    def knows(self, *groups: str, **claims: Any) -> None:
        """Let the provider say this about the user from now on."""
        body = {"preferred_username": self.name, "groups": list(groups), **claims}
        httpx.put(f"{self.url}/users/{self.subject}", json=body, timeout=60).raise_for_status()

    def log_in(self, browser: Client, path: str = "/login/sso/") -> Any:
        """Start at *path*, consent at the provider, and return to gridcast; return its answer."""
        return browser.get(self.consented(browser.get(path)["Location"]))

    def consented(self, url: str, **form: str) -> str:
        """Consent at the provider; return the path to which it sends the browser back."""
        answer = httpx.post(url, data=form or {"sub": self.subject}, timeout=60)
        parts = urlsplit(answer.headers["Location"])
        assert parts.netloc == "testserver"
        return f"{parts.path}?{parts.query}"


@pytest.fixture(scope="module")
def provider_url() -> Iterator[str]:
    with warnings.catch_warnings(record=True):  # it imports modules that authlib calls deprecated
        import oidc_provider_mock
    with oidc_provider_mock.run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def provider(provider_url: str, settings: Settings, db: None) -> Provider:
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        provider_url, "gridcast", "secret", "Grid Login", ("openid", "profile", "email"), "groups", ROLES
    )
    number = next(_numbers)
    return Provider(provider_url, f"subject-{number}", f"ada-{number}")


def connect(provider: Provider, browser: Client) -> Any:
    page = browser.post("/account/connect/").content.decode()
    [url] = re.findall(r'content="0; url=([^"]+)"', page)
    return browser.get(provider.consented(unescape(url)))


def roles(provider: Provider) -> list[str]:
    """The roles that a session of the user has which begins at the provider."""
    user = User.objects.get(username=provider.name)
    act_as(user, usual_identity(user))
    return [str(grant) for grant in present_grants(user)]


def test_a_user_logs_in_and_gets_the_roles_of_the_groups(browser: Client, provider: Provider) -> None:
    assert "Log in with Grid Login" in browser.get("/login/").content.decode()
    provider.knows("/grid/ops", "grid-users", "chess", email="ada@example.org", given_name="Ada")
    assert provider.log_in(browser, "/login/sso/?next=/alerts/")["Location"] == "/alerts/"
    assert is_logged_in(browser)
    assert roles(provider) == ["operator", "viewer"]
    user = User.objects.get(username=provider.name)
    assert (user.email, user.first_name, user.has_usable_password()) == ("ada@example.org", "Ada", False)


def test_roles_follow_the_groups_at_every_login(browser_elsewhere: Browsers, provider: Provider) -> None:
    provider.knows("/grid/ops")
    provider.log_in(browser_elsewhere())
    user = User.objects.get(username=provider.name)
    user.groups.add(Group.objects.create(name="readers of one suite"))
    provider.knows("grid-users", "cn=admins,ou=grid")
    provider.log_in(browser_elsewhere())
    assert roles(provider) == ["administrator", "viewer"]
    provider.knows("grid-users")
    provider.log_in(browser_elsewhere())
    assert roles(provider) == ["viewer"]
    grant(user, Grant(UserRole.SCHEDULER))
    provider.log_in(browser_elsewhere())
    assert roles(provider) == ["scheduler"], "what is granted here counts without the provider"
    assert user.groups.filter(name="readers of one suite").exists(), "a group that is no role stays"
    assert not User.objects.filter(username=f"{provider.name}2").exists(), "no second account"


def test_a_login_that_succeeds_returns_its_start_and_one_that_fails_does_not(
    browser: Client, provider: Provider
) -> None:
    counted = [(throttle.START, browser.defaults["REMOTE_ADDR"])]
    provider.knows("/grid/ops")
    for _ in range(3):
        provider.log_in(browser)
        browser.post("/logout/")
    assert throttle.limits().forget(counted) == [0]
    provider.knows("chess")
    assert provider.log_in(browser).status_code == 403
    browser.get("/login/sso/")
    assert throttle.limits().forget(counted) == [2]


def test_a_user_without_a_mapped_group_is_refused(
    browser: Client, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.knows("chess")
    with caplog.at_level(logging.WARNING, logger=events.__name__):
        answer = provider.log_in(browser)
    assert (answer.status_code, "none of your groups" in answer.content.decode()) == (403, True)
    assert not User.objects.filter(username=provider.name).exists()
    assert f"user {provider.name!r}" in caplog.text
    assert answer.wsgi_request.failed_login == provider.name, "for the audit record"


def test_a_user_that_lost_the_groups_is_suspended_until_a_login_names_one_again(
    browser_elsewhere: Browsers, provider: Provider
) -> None:
    provider.knows("/grid/ops")
    before = browser_elsewhere()
    provider.log_in(before)
    user = User.objects.get(username=provider.name)
    act_as(user, usual_identity(user))
    token = ApiToken.objects.issue(user, "program", ["read"])
    assert ApiToken.objects.find(token) is not None
    provider.knows()
    assert provider.log_in(browser_elsewhere()).status_code == 403
    assert roles(provider) == []
    assert not is_logged_in(before)
    assert ApiToken.objects.find(token) is None
    taken = AuditEvent.objects.get(status=403, outcome="done")
    assert (taken.user, taken.changes[-1]["after"]) == (
        provider.name,
        "suspended: Grid Login named no group with a role",
    )
    provider.knows("grid-users")
    provider.log_in(browser_elsewhere())
    assert roles(provider) == ["viewer"]
    assert ApiToken.objects.find(token) is not None, "it was never revoked"


def test_a_site_admin_administers_the_site_that_the_mapping_names(
    browser_elsewhere: Browsers, provider: Provider
) -> None:
    provider.knows("ncsa-staff", "grid-users")
    provider.log_in(browser_elsewhere())
    assert roles(provider) == ["viewer"], "there is no such site yet"
    Site.objects.create(name="ncsa")
    provider.log_in(browser_elsewhere())
    assert roles(provider) == ["site_admin:ncsa", "viewer"]


def test_the_provider_cannot_take_over_a_local_account(browser: Client, provider: Provider) -> None:
    local = builders.user(provider.name.upper(), is_superuser=True)
    provider.knows("grid-users", email="chief@example.org")
    answer = provider.log_in(browser)
    assert (answer.status_code, "The name is taken" in answer.content.decode()) == (403, True)
    assert not SocialAccount.objects.filter(user=local).exists()


def test_a_local_user_connects_the_own_account_there(browser_elsewhere: Browsers, provider: Provider) -> None:
    browser = browser_elsewhere()
    builders.user(provider.name, password=builders.PASSWORD)
    log_in(browser, provider.name)
    provider.knows("grid-users")
    assert "/account/confirm/password/" in browser.get("/account/connect/")["Location"]
    confirm(browser)
    assert "Continue to Grid Login" in browser.get("/account/connect/").content.decode()
    assert connect(provider, browser)["Location"] == "/account/"
    assert "connected since" in browser.get("/account/").content.decode()
    other = browser_elsewhere()
    provider.log_in(other)
    assert is_logged_in(other)
    assert roles(provider) == ["viewer"]


def test_a_second_factor_is_asked_for_as_well(browser_elsewhere: Browsers, provider: Provider) -> None:
    browser = browser_elsewhere()
    builders.user(provider.name, password=builders.PASSWORD)
    log_in(browser, provider.name)
    secret = add_app(browser)
    provider.knows("grid-users")
    connect(provider, browser)
    other = browser_elsewhere()
    assert provider.log_in(other)["Location"] == "/login/second-factor/"
    assert not is_logged_in(other)
    other.post("/login/second-factor/", {"code": code_of(secret)})
    assert is_logged_in(other)


def test_a_disabled_account_is_refused(browser_elsewhere: Browsers, provider: Provider) -> None:
    provider.knows("grid-users")
    provider.log_in(browser_elsewhere())
    User.objects.filter(username=provider.name).update(is_active=False)
    answer = provider.log_in(browser_elsewhere())
    assert (answer.status_code, "Account disabled" in answer.content.decode()) == (403, True)


def test_an_answer_to_another_browser_is_not_accepted(
    browser_elsewhere: Browsers, provider: Provider
) -> None:
    """Else a link could log a victim in as the attacker."""
    provider.knows("grid-users")
    path = provider.consented(browser_elsewhere().get("/login/sso/")["Location"])
    victim = browser_elsewhere()
    assert victim.get(path).status_code == 401
    assert not is_logged_in(victim)


def test_an_answer_is_accepted_once(browser: Client, provider: Provider) -> None:
    provider.knows("grid-users")
    path = provider.consented(browser.get("/login/sso/")["Location"])
    assert browser.get(path).status_code == 302
    browser.post("/logout/")
    assert browser.get(path).status_code == 401
    assert not is_logged_in(browser)


def test_cancelling_at_the_provider_is_no_error(browser: Client, provider: Provider) -> None:
    url = browser.get("/login/sso/")["Location"]
    path = provider.consented(url, action="deny")
    [state] = parse_qs(urlsplit(url).query)["state"]  # this provider leaves it out of a refusal
    assert "Login cancelled" in browser.get(f"{path}&state={state}").content.decode()


def test_the_request_carries_a_challenge_and_nothing_that_a_link_could_add(
    browser: Client, provider: Provider
) -> None:
    url = browser.get("/login/sso/?scope=admin&auth_params=redirect_uri%3Dhttps://evil.example")["Location"]
    query = parse_qs(urlsplit(url).query)
    assert query["code_challenge_method"] == ["S256"]
    assert sorted(query["scope"][0].split()) == ["email", "openid", "profile"]
    assert query["redirect_uri"] == ["http://testserver/login/sso/callback/"]


@pytest.mark.parametrize("names", [None, frozenset(), frozenset({"chief"})])
def test_an_unreachable_provider_is_said_so_and_that_local_accounts_log_in_if_any_may(
    browser: Client, provider: Provider, settings: Settings, names: frozenset[str] | None
) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(names)
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        "http://localhost:1", "gridcast", "secret", "Grid Login", ("openid",), "groups", ROLES
    )
    answer = browser.get("/login/sso/")
    assert (answer.status_code, "Grid Login is unreachable" in answer.content.decode()) == (502, True)
    assert ("local accounts can log in meanwhile" in answer.content.decode()) == (names != frozenset())


def test_without_a_provider_its_pages_are_missing(browser: Client, reader: User) -> None:
    assert browser.get("/login/sso/").status_code == 404
    assert browser.get("/login/sso/callback/?state=a&code=b").status_code == 404
    log_in(browser, reader)
    confirm(browser)
    assert browser.get("/account/connect/").status_code == 404


@pytest.mark.parametrize(
    ("claims", "claim", "groups"),
    [
        ({"groups": ["a", "b"]}, "groups", {"a", "b"}),
        ({"groups": "a"}, "groups", {"a"}),
        ({"groups": ["a", 1, None, ["b"]]}, "groups", {"a"}),
        ({"groups": {"a": True}}, "groups", set()),
        ({"groups": None}, "groups", set()),
        ({}, "groups", set()),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", {"a"}),
        ({"realm_access": ["roles"]}, "realm_access.roles", set()),
        ({"https://example.org/groups": ["a"]}, "https://example.org/groups", {"a"}),
    ],
)
def test_the_claim_of_the_groups_has_many_forms(claims: dict[str, Any], claim: str, groups: set[str]) -> None:
    assert group_roles.groups_in(claims, claim) == groups
