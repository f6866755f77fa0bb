"""Pages and commands name the real reason why a password opens nothing, and a remedy that works."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models.role import UserRole
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts import door_reasons, identities
from monitor.web.accounts.environment import AUTH_TIME, IdentityProvider, LocalLogin, RemoteUser
from tests.monitor.web.accounts.identities import identity_of, session_by
from tests.monitor.web.accounts.logins import as_confirmed, is_logged_in, log_in
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
PROVIDER = IdentityProvider(
    "https://id.example.org/", "gridcast", "s", "Grid Login", ("openid",), "groups", (("viewer", "g"),)
)
PROXIED = RemoteUser("Remote-User", Proxies((), is_unix=True), "")


@pytest.fixture(autouse=True)
def provider(settings: Settings) -> IdentityProvider:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    return PROVIDER


def text_of(page: object) -> str:
    """Return the text of a page as a reader sees it."""
    plain = re.sub(r"<[^>]+>", "", page.content.decode())  # type: ignore[attr-defined]
    return " ".join(plain.replace("&#x27;", "'").split())


def _by_provider(user: User, settings: Settings) -> None:
    identity_of(user, "operator")


def _provider_removed(user: User, settings: Settings) -> None:
    identity_of(user, "operator")
    settings.GRIDCAST_IDENTITY_PROVIDER = None


def _provider_moved(user: User, settings: Settings) -> None:
    identity_of(user, "operator", issuer="https://old.example.org")


def _suspended(user: User, settings: Settings) -> None:
    identities.suspend(identity_of(user, "operator"), "no group", timezone.now())


def _not_listed(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"admin", "chief"}))


def _not_listed_and_proxied(user: User, settings: Settings) -> None:
    _not_listed(user, settings)
    settings.GRIDCAST_REMOTE_USER = PROXIED


def _not_listed_and_by_provider(user: User, settings: Settings) -> None:
    _not_listed(user, settings)
    identity_of(user, "operator")


def _not_listed_and_suspended(user: User, settings: Settings) -> None:
    _not_listed(user, settings)
    _suspended(user, settings)


def _listed_and_by_provider(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"chief", str(user)}))
    identity_of(user, "operator")


def _closed_to_all(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset())
    identity_of(user, "operator")


OPENS = "opens the account for a while: manage.py account open NAME."
GRANTS = "grants a role here: manage.py access grant NAME ROLE."
CASES: dict[str, tuple[Callable[[User, Settings], None], str, str]] = {
    "by the provider": (
        _by_provider,
        "its roles come from Grid Login.",
        f"Log in with Grid Login. If that is not possible, an administrator {OPENS}",
    ),
    "no provider": (
        _provider_removed,
        "its roles come from https://id.example.org, and no identity provider is configured now.",
        f"An administrator {OPENS}",
    ),
    "another provider": (
        _provider_moved,
        "its roles come from https://old.example.org, but the configured identity provider is"
        " https://id.example.org/.",
        f"An administrator {OPENS}",
    ),
    "suspended": (
        _suspended,
        "its roles come from Grid Login; they are suspended: no group.",
        "Log in with Grid Login (if it names a group with a role). If that is not possible, an administrator"
        f" {GRANTS}",
    ),
    "not listed": (
        _not_listed,
        "GRIDCAST_LOCAL_LOGIN does not name the account.",
        f"An administrator adds NAME to GRIDCAST_LOCAL_LOGIN, or {OPENS}",
    ),
    "not listed, but proxied": (
        _not_listed_and_proxied,
        "GRIDCAST_LOCAL_LOGIN does not name the account.",
        "Log in with the proxy in front of gridcast. If that is not possible, an administrator adds NAME to"
        f" GRIDCAST_LOCAL_LOGIN, or {OPENS}",
    ),
    "not listed, by the provider": (
        _not_listed_and_by_provider,
        "GRIDCAST_LOCAL_LOGIN does not name the account.",
        "Log in with Grid Login. If that is not possible, an administrator opens the account for a while:"
        " manage.py account open NAME, or grants a role here: manage.py access grant NAME ROLE, and adds NAME"
        " to GRIDCAST_LOCAL_LOGIN.",
    ),
    "not listed, and suspended": (
        _not_listed_and_suspended,
        "GRIDCAST_LOCAL_LOGIN does not name the account.",
        "Log in with Grid Login (if it names a group with a role). If that is not possible, an administrator"
        " grants a role here: manage.py access grant NAME ROLE, and opens the account for a while:"
        " manage.py account open NAME.",
    ),
    "listed, by the provider": (
        _listed_and_by_provider,
        "GRIDCAST_LOCAL_LOGIN names the account, and no role is granted to it here.",
        f"Log in with Grid Login. If that is not possible, an administrator {GRANTS}",
    ),
    "closed to all": (
        _closed_to_all,
        "GRIDCAST_LOCAL_LOGIN=nobody closes the local login of all accounts.",
        f"Log in with Grid Login. If that is not possible, an administrator {OPENS}",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_right_password_that_opens_nothing_is_answered_with_the_reason_and_the_remedy(
    case: str, reader: User, browser: Client, settings: Settings
) -> None:
    happens, reason, remedy = CASES[case]
    happens(reader, settings)
    page = log_in(browser, reader)
    assert page.status_code == 403
    text = text_of(page)
    assert f"No password or passkey opens the account {reader} now: {reason}" in text
    assert remedy.replace("NAME", str(reader)) in text


def _take(step: str, user: User, settings: Settings) -> None:
    """Do what a *step* of a remedy says."""
    if step == f"adds {user} to GRIDCAST_LOCAL_LOGIN":
        names: frozenset[str] = settings.GRIDCAST_LOCAL_LOGIN.names
        settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(names | {str(user)})
        return
    command = step.partition("manage.py ")[2].replace("ROLE", "viewer")
    call_command(*command.split(), stdout=io.StringIO())


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_each_remedy_that_the_page_names_opens_the_account(
    case: str, number: int, reader: User, browser: Client, settings: Settings
) -> None:
    happens, _, _ = CASES[case]
    happens(reader, settings)
    closed = door_reasons.closed_door(reader, timezone.now())
    assert closed is not None
    remedies = closed.remedy.split(", or ")
    assert len(remedies) <= 2
    for step in remedies[number % len(remedies)].split(", and "):
        _take(step, reader, settings)
    log_in(browser, reader)
    assert is_logged_in(browser)


# Confirmation.


def _log_in_elsewhere(browser: Client, user: User) -> None:
    """Let the browser have a session of *user*, as the provider or a proxy begins it."""
    session_by(browser, User.objects.get(pk=user.pk), user.identities.first())


def _asked(browser: Client, user: User) -> str:
    """Return the text of the page that says that *user* cannot confirm."""
    _log_in_elsewhere(browser, user)
    page = browser.get("/account/app/")
    assert page.status_code == 403
    return text_of(page)


def _follow(text: str, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the commands that *text* names, as an administrator of the host does."""
    commands = re.findall(rf"manage\.py account (\w+) {user}", text)
    for action in commands:
        monkeypatch.setattr("sys.stdin", io.StringIO(builders.PASSWORD))
        options = ["--stdin"] if action == "password" else []
        call_command("account", action, str(user), *options, stdout=io.StringIO())


def test_a_user_of_the_provider_alone_confirms_after_what_the_page_advises(
    browser: Client, browser_elsewhere: Callable[[], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = builders.user("boss")
    identity_of(user, "administrator")
    text = _asked(browser, user)
    assert "manage.py account password boss opens the account to it for a while" in text
    assert "because its roles come from Grid Login: manage.py account open boss" in text
    assert "GRIDCAST_OIDC_CONFIRM lets users confirm at Grid Login" in text
    _follow(text, user, monkeypatch)
    again = browser_elsewhere()
    _log_in_elsewhere(again, user)
    assert "/account/confirm/password/" in again.get("/account/app/")["Location"]


def test_a_user_that_only_a_proxy_names_is_told_that_it_needs_a_password_of_its_own(
    browser: Client, browser_elsewhere: Callable[[], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = builders.user("boss")
    text = _asked(browser, user)
    assert "Your account has no second factor, and no password." in text
    assert "account open" not in text
    assert "GRIDCAST_OIDC_CONFIRM" not in text
    _follow(text, user, monkeypatch)
    again = browser_elsewhere()
    _log_in_elsewhere(again, user)
    assert "/account/confirm/password/" in again.get("/account/app/")["Location"]


def test_the_provider_is_not_offered_where_it_confirms_already(
    browser: Client, settings: Settings, provider: IdentityProvider
) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(**{**vars(provider), "confirm": AUTH_TIME})
    assert "GRIDCAST_OIDC_CONFIRM" not in _asked(browser, builders.user("local"))


@pytest.mark.parametrize("confirm", ["", AUTH_TIME])
def test_the_provider_does_not_confirm_for_an_identity_of_a_former_issuer(
    confirm: str, browser: Client, settings: Settings, provider: IdentityProvider
) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(**{**vars(provider), "confirm": confirm})
    user = builders.user("boss")
    identity_of(user, "administrator", issuer="https://former.example.org")
    assert "GRIDCAST_OIDC_CONFIRM" not in _asked(browser, user)


# Second factors.


def _removed(user: User) -> str:
    printed = io.StringIO()
    call_command("account", "remove-second-factors", str(user), stdout=printed)
    return printed.getvalue()


def test_the_removal_of_factors_says_what_opens_the_account_then(reader: User, settings: Settings) -> None:
    Authenticator.objects.create(user=reader, type="totp", data={"secret": "x"})
    words = f"1 second factor of {reader} removed, and all sessions ended"
    assert _removed(reader) == f"{words}: the password alone opens the account.\n"
    identity_of(reader, "operator")
    Authenticator.objects.create(user=reader, type="totp", data={"secret": "x"})
    assert _removed(reader) == f"{words}: Grid Login alone opens the account.\n"


def test_without_a_factor_nothing_is_removed_and_no_session_ends() -> None:
    user = builders.user("boss")
    UserSession.objects.create(user=user, session_key="x" * 32, ip="192.0.2.1")
    words = "nothing is changed: nothing opens the account now, because it has no password"
    assert _removed(user) == f"boss has no second factor, so {words}.\n"
    assert UserSession.objects.count() == 1


def test_the_account_page_says_what_opens_the_account_without_a_factor(
    reader: User, browser: Client, settings: Settings
) -> None:
    identity_of(reader, "operator")
    _log_in_elsewhere(browser, reader)
    text = text_of(browser.get("/account/"))
    assert "None yet: Grid Login alone opens the account." in text
    assert "inactive: its roles come from Grid Login" in text


# Opened by command.


def test_pages_show_until_when_a_command_has_opened_the_account(
    reader: User, browser: Client, browser_elsewhere: Callable[[], Client]
) -> None:
    identity_of(reader, "operator")
    chief = builders.user("chief", password=builders.PASSWORD)
    roles.grant(chief, Grant(UserRole.ADMINISTRATOR))
    administrator = browser_elsewhere()
    administrator.force_login(chief)
    as_confirmed(administrator, chief)
    path, opened = f"/access/users/{reader.pk}/", "opened the login by password and passkey until"
    assert opened not in text_of(administrator.get(path))
    call_command("account", "open", str(reader), stdout=io.StringIO())
    log_in(browser, reader)
    for page in (administrator.get(path), browser.get("/account/")):
        assert opened in text_of(page)


# Pages that the account, and not its roles, refuses.


def test_a_page_refused_for_the_account_does_not_advise_to_ask_for_roles(
    browser: Client, reader: User, settings: Settings
) -> None:
    user = builders.user("boss")
    browser.force_login(user)
    text = text_of(browser.get("/account/password/"))
    assert "Your account has no password" in text
    assert "manage.py account password boss" in text
    assert "An administrator grants roles." not in text
    browser.force_login(reader)
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"chief"}))
    assert "is inactive: GRIDCAST_LOCAL_LOGIN does not name the account" in text_of(
        browser.get("/account/password/")
    )
    assert "An administrator grants roles." in text_of(browser.get("/access/"))


def test_the_login_says_why_a_session_that_began_with_a_password_has_no_role_any_more(
    reader: User, browser: Client
) -> None:
    identity_of(reader, "operator")
    roles.grant(reader, Grant(UserRole.OPERATOR))
    log_in(browser, reader)
    roles.revoke(User.objects.get(pk=reader.pk), Grant(UserRole.OPERATOR))
    page = browser.get("/series/", follow=True)
    assert f"Your session as {reader} has no role any more: its roles come from Grid Login." in text_of(page)
    assert "has no role any more" not in text_of(Client().get("/login/"))
