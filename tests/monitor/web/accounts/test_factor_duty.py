"""Roles that need a second factor: a notice until the term ends, and then only pages that add a factor."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, Identity, SecondFactorTerm, UserRole
from monitor.models.token import READ
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts.environment import IdentityProvider, RemoteUser
from monitor.web.accounts.factor_duty import PROVIDER_FACTOR, keep_terms, note_provider_factor
from monitor.web.accounts.identities import disconnect
from tests.monitor.web.accounts import identities
from tests.monitor.web.accounts.logins import add_app, log_in
from tests.monitor.web.pages import builders

Browsers = Callable[[], Client]
DUE = "/account/second-factor/"
OPERATOR, VIEWER = Grant(UserRole.OPERATOR), Grant(UserRole.VIEWER)


@pytest.fixture
def operator(reader: User, settings: Settings) -> User:
    """A user whose role needs a second factor; the term has not begun."""
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset({"operator", "administrator"})
    settings.GRIDCAST_SECOND_FACTOR_DAYS = 14
    roles.grant(reader, OPERATOR)
    return reader


@pytest.fixture
def late(operator: User) -> User:
    """A user whose term is over."""
    SecondFactorTerm.objects.create(user=operator, began_at=timezone.now() - timedelta(days=15))
    return operator


def opens(browser: Client, path: str = "/series/") -> bool:
    answer = browser.get(path)
    assert answer.status_code in {200, 302}
    return answer.status_code == 200


def test_before_the_end_of_the_term_a_notice_says_until_when(browser: Client, operator: User) -> None:
    log_in(browser, operator)
    page = browser.get("/account/").content.decode()
    until = SecondFactorTerm.objects.get(user=operator).began_at + timedelta(days=14)
    assert "Your role operator needs a second factor from" in page
    assert f"{until:%Y-%m-%d %H:%M}" in page
    assert opens(browser)
    assert browser.get(DUE)["Location"] == "/account/"


def test_a_login_at_the_provider_is_offered_only_to_a_user_that_it_knows(
    browser: Client, late: User, settings: Settings
) -> None:
    settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES = frozenset({"mfa"})
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        "https://id.example.org", "gridcast", "s", "Grid Login", ("openid",), "groups", ()
    )
    log_in(browser, late)
    assert "A login with Grid Login counts as well" not in browser.get(DUE).content.decode()
    identities.identity_of(late, "operator", issuer="https://former.example.org")
    assert "A login with Grid Login counts as well" not in browser.get(DUE).content.decode()
    identities.identity_of(late, "operator")
    assert "A login with Grid Login counts as well" in browser.get(DUE).content.decode()


def test_after_the_term_only_pages_that_add_a_factor_open(browser: Client, late: User) -> None:
    log_in(browser, late)
    for path in ("/", "/series/", "/account/", "/admin/", "/account/tokens/", "/account/password/"):
        answer = browser.get(path)
        assert (answer.status_code, answer["Location"]) == (302, DUE), path
    page = browser.get(DUE).content.decode()
    assert "Your role operator has needed a second factor" in page
    assert "Series" not in page, "no navigation"
    assert browser.get("/account/app/")["Location"].startswith("/account/confirm/password/")
    add_app(browser)
    assert opens(browser)
    assert opens(browser, "/account/")


def test_after_the_term_changes_parts_and_the_api_are_refused(browser: Client, late: User) -> None:
    log_in(browser, late)
    refused = browser.post("/account/sessions/end/", {"session": "others"})
    assert (refused.status_code, "needs a second factor" in refused.content.decode()) == (403, True)
    assert browser.get("/banner/", headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    for headers in ({}, {"Authorization": "Bearer gcast_of_nobody"}):
        answer = browser.get("/api/v1/series", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert 'class="sections"' not in browser.get("/no-such-page/").content.decode()
    assert browser.post("/logout/")["Location"] == "/login/"


def test_tokens_go_on(late: User) -> None:
    token = ApiToken.objects.issue(late, "script", [READ])
    answer = Client().get("/api/v1/series", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200


def test_other_roles_need_none(browser: Client, late: User) -> None:
    roles.grant(late, VIEWER)
    roles.revoke(late, OPERATOR)
    log_in(browser, late)
    assert opens(browser)
    assert "needs a second factor" not in browser.get("/account/").content.decode()


def test_without_the_setting_none_is_needed(browser: Client, late: User, settings: Settings) -> None:
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset()
    log_in(browser, late)
    assert opens(browser)


def test_who_removes_the_last_factor_after_the_term_needs_another(browser: Client, late: User) -> None:
    log_in(browser, late)
    add_app(browser)
    assert opens(browser)
    browser.post("/account/app/remove/")
    assert browser.get("/series/")["Location"] == DUE


def test_recovery_codes_alone_are_no_second_factor(browser: Client, late: User) -> None:
    log_in(browser, late)
    add_app(browser)
    Authenticator.objects.filter(user=late, type="totp").delete()
    log_in(browser, late)
    assert browser.get("/series/")["Location"] == DUE


def test_a_user_that_a_proxy_names_needs_none(late: User, settings: Settings) -> None:
    settings.GRIDCAST_PROXIES = Proxies((ipaddress.ip_network("192.0.2.80/32"),), is_unix=False)
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", settings.GRIDCAST_PROXIES, "")
    proxy = Client(REMOTE_ADDR="192.0.2.80", headers={"Remote-User": str(late)})
    assert opens(proxy)


@pytest.mark.parametrize(
    ("amr", "acr", "counts"),
    [
        ((), "", False),
        (("pwd",), "1", False),
        (("pwd", "mfa"), "", True),
        ((), "https://refeds.org/profile/mfa", True),
        (("https://refeds.org/profile/MFA",), "MFA", False),
    ],
)
def test_a_login_at_the_provider_counts_by_its_claims(
    browser: Client, late: User, settings: Settings, amr: tuple[str, ...], acr: str, counts: bool
) -> None:
    settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES = frozenset({"mfa", "https://refeds.org/profile/mfa"})
    log_in(browser, late)
    session = browser.session
    request = HttpRequest()
    request.session = session
    note_provider_factor(request, amr, acr)
    session.save()
    assert opens(browser) == counts


def test_a_login_by_password_takes_back_what_one_at_the_provider_brought(browser: Client, late: User) -> None:
    session: SessionBase = browser.session
    session[PROVIDER_FACTOR] = True  # of a login that was begun in this browser, and refused
    session.save()
    browser.cookies["sessionid"] = str(session.session_key)
    log_in(browser, late)
    assert browser.get("/series/")["Location"] == DUE


def test_housekeeping_begins_terms_of_users_that_do_not_log_in(operator: User, noon: datetime) -> None:
    other = builders.user(f"{operator}-other")
    chief = builders.user(f"{operator}-chief", is_superuser=True)
    for minutes in (0, 10):
        keep_terms(noon + timedelta(minutes=minutes))
    began = dict(SecondFactorTerm.objects.values_list("user", "began_at"))
    assert began == {operator.pk: noon, chief.pk: noon}
    roles.grant(other, OPERATOR)
    keep_terms(noon + timedelta(minutes=20))
    assert SecondFactorTerm.objects.get(user=other).began_at == noon + timedelta(minutes=20)


def test_a_new_grant_and_a_new_setting_begin_a_term_again(
    operator: User, noon: datetime, settings: Settings
) -> None:
    keep_terms(noon)
    roles.revoke(operator, OPERATOR)
    keep_terms(noon + timedelta(days=1))
    assert not SecondFactorTerm.objects.exists()
    roles.grant(operator, OPERATOR)
    keep_terms(noon + timedelta(days=2))
    assert SecondFactorTerm.objects.get(user=operator).began_at == noon + timedelta(days=2)
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset()
    keep_terms(noon + timedelta(days=3))
    assert not SecondFactorTerm.objects.exists()


def test_the_role_of_an_identity_begins_a_term_that_lasts(operator: User, noon: datetime) -> None:
    roles.revoke(operator, OPERATOR)
    identities.identity_of(operator, "operator")
    for minutes in (0, 10):
        keep_terms(noon + timedelta(minutes=minutes))
    assert SecondFactorTerm.objects.get(user=operator).began_at == noon


def test_a_suspension_and_a_disabled_account_prolong_no_term(operator: User, noon: datetime) -> None:
    roles.revoke(operator, OPERATOR)
    identity = identities.identity_of(operator, "operator", "site_admin:ncsa")
    keep_terms(noon)
    User.objects.filter(pk=operator.pk).update(is_active=False)
    Identity.objects.filter(pk=identity.pk).update(suspended="logged out at the provider")
    keep_terms(noon + timedelta(days=1))
    assert SecondFactorTerm.objects.get(user=operator).began_at == noon
    Identity.objects.filter(pk=identity.pk).update(roles=["site_admin:ncsa"])
    keep_terms(noon + timedelta(days=2))
    assert not SecondFactorTerm.objects.exists()


def test_disconnecting_and_connecting_an_identity_begins_no_term_again(
    operator: User, noon: datetime
) -> None:
    """Both are in the hands of the user, who would have new days as often as it likes."""
    roles.revoke(operator, OPERATOR)
    roles.grant(operator, VIEWER)
    keep_terms(noon)
    for day in (1, 20):
        identity = identities.identity_of(operator, "operator")
        keep_terms(noon + timedelta(days=day))
        disconnect(identity)
        keep_terms(timezone.now() + timedelta(minutes=10))
        assert SecondFactorTerm.objects.get(user=operator).began_at == noon + timedelta(days=1)


def test_a_role_that_goes_otherwise_ends_a_term_that_a_disconnected_identity_left(
    operator: User, noon: datetime, settings: Settings
) -> None:
    roles.revoke(operator, OPERATOR)
    roles.grant(operator, VIEWER)
    identity = identities.identity_of(operator, "operator")
    keep_terms(noon)
    disconnect(identity)
    roles.grant(operator, OPERATOR)
    later = timezone.now() + timedelta(minutes=10)
    keep_terms(later)
    roles.revoke(operator, OPERATOR)
    keep_terms(later + timedelta(minutes=10))
    assert not SecondFactorTerm.objects.filter(user=operator).exists()


def test_without_the_setting_no_term_is_left_by_a_disconnected_identity(
    operator: User, noon: datetime, settings: Settings
) -> None:
    roles.revoke(operator, OPERATOR)
    roles.grant(operator, VIEWER)
    identity = identities.identity_of(operator, "operator")
    keep_terms(noon)
    disconnect(identity)
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset()
    keep_terms(noon + timedelta(minutes=10))
    assert not SecondFactorTerm.objects.exists()
