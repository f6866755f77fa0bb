"""Whatever would take the last administrator is refused in words, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant, LastAdministrator
from monitor.management.recorded_commands import record
from monitor.models import ApiToken, AuditEvent, Identity
from monitor.models.role import UserRole
from monitor.web.accounts import identities, users
from monitor.web.accounts.environment import IdentityProvider
from monitor.web.accounts.sessions import IDENTITY_KEY
from monitor.web.pages.http import errors
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import as_confirmed
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db(transaction=True)  # the database counts at the commit
ADMINISTRATOR = Grant(UserRole.ADMINISTRATOR)


def _granted() -> User:
    user = builders.user("chief", password=builders.PASSWORD)
    roles.grant(user, ADMINISTRATOR)
    return user


def _by_identity() -> User:
    """An administrator by an identity alone, who could log in without it: as a viewer."""
    user = builders.user("chief", password=builders.PASSWORD)
    roles.grant(user, Grant(UserRole.VIEWER))
    identity_of(user, "administrator")
    return user


ADMINISTRATORS = {"granted here": _granted, "by an identity": _by_identity}


def _disconnected(user: User) -> None:
    identities.disconnect(user.identities.get())


def _groups_cleared(user: User) -> None:
    with roles.keeping_an_administrator(user):
        user.groups.clear()


# What takes an administrator, of those of each kind. The commands and pages are the ways to it.
ACTS: Mapping[str, tuple[Callable[[User], object], set[str]]] = {
    "disable": (users.disable, set(ADMINISTRATORS)),
    "delete": (users.delete, set(ADMINISTRATORS)),
    "revoke": (partial(roles.revoke, taken=ADMINISTRATOR), {"granted here"}),
    "clear the groups": (_groups_cleared, {"granted here"}),
    "disconnect": (_disconnected, {"by an identity"}),
}
COMMANDS: Mapping[str, tuple[list[str], set[str]]] = {
    "disable": (["account", "disable", "chief"], set(ADMINISTRATORS)),
    "revoke": (["access", "revoke", "chief", "administrator"], {"granted here"}),
}
PAGES: Mapping[str, Callable[[User], tuple[str, dict[str, Any]]]] = {
    "disable": lambda user: (f"/access/users/{user.pk}/disable/", {}),
    "delete": lambda user: (f"/access/users/{user.pk}/delete/", {"name": user.username}),
    "revoke": lambda user: (f"/access/users/{user.pk}/revoke/", {"grant": "administrator"}),
    "disconnect": lambda user: (f"/access/users/{user.pk}/disconnect/", {"identity": _identity(user)}),
    "disconnect the own one": lambda user: (f"/account/identities/{_identity(user)}/disconnect/", {}),
}


def _identity(user: User) -> int:
    return user.identities.values_list("pk", flat=True).first() or 0


def provider(url: str) -> IdentityProvider:
    return IdentityProvider(url, "gridcast", "secret", "Grid", ("openid",), "groups", ())


def state(user: User) -> Any:
    now = User.objects.get(pk=user.pk)
    return (
        now.is_active,
        roles.grants_of(now),
        list(now.identities.values_list("roles", "suspended")),
        ApiToken.objects.filter(revoked_at=None).count(),
    )


@pytest.mark.parametrize(("act", "kind"), [(act, kind) for act in ACTS for kind in sorted(ACTS[act][1])])
def test_no_act_takes_the_last_administrator(act: str, kind: str) -> None:
    user = ADMINISTRATORS[kind]()
    before = state(user)
    takes, _ = ACTS[act]
    with pytest.raises(LastAdministrator, match="chief is the last active administrator"):
        takes(user)
    assert state(user) == before
    assert (user.is_active, user.pk is None) == (True, False), "nor is the object in memory changed"
    roles.grant(builders.user("deputy"), ADMINISTRATOR)
    takes(User.objects.get(pk=user.pk))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ADMINISTRATORS)
def test_no_command_takes_the_last_administrator(kind: str, command: str) -> None:
    user = ADMINISTRATORS[kind]()
    before = state(user)
    words, of_kinds = COMMANDS[command]
    if kind in of_kinds:
        with pytest.raises(CommandError, match="chief is the last active administrator"):
            call_command(*words)
    else:
        call_command(*words)
    assert state(user) == before


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("kind", ADMINISTRATORS)
def test_no_page_takes_the_last_administrator(kind: str, page: str, settings: Settings) -> None:
    user = ADMINISTRATORS[kind]()
    path, form = PAGES[page](user)
    settings.GRIDCAST_IDENTITY_PROVIDER = provider("https://id.example.org")
    browser, before = Client(), state(user)
    browser.force_login(user)
    session = browser.session
    session[IDENTITY_KEY] = _identity(user) or None
    session.save()
    answer = as_confirmed(browser, user).post(path, form)
    words = ("last active administrator", "your own account", "There is none to choose", "not one of the")
    is_missing = "identities/0/" in path
    assert answer.status_code == (404 if is_missing else 409)
    assert is_missing or any(each in answer.content.decode() for each in words)
    assert state(user) == before
    assert not AuditEvent.objects.filter(outcome="done").exists()


def _take(*_: Any) -> int:
    """Change what a statement may, without a check before the commit, and end no session."""
    User.objects.update(is_superuser=False)
    Identity.objects.update(roles=["viewer"])
    return 0


@pytest.mark.parametrize("kind", ADMINISTRATORS)
def test_a_page_whose_commit_takes_the_last_administrator_says_so(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = ADMINISTRATORS[kind]()
    before, browser = state(user), Client(raise_request_exception=False)
    browser.force_login(user)
    monkeypatch.setattr("monitor.web.accounts.sessions.end_others", _take)
    answer = browser.post("/account/sessions/end/", {"session": "others"})
    assert (answer.status_code, "no active administrator would remain" in answer.content.decode()) == (
        409,
        True,
    )
    assert state(user) == before


def test_a_request_to_the_api_whose_commit_takes_the_last_administrator_says_so() -> None:
    user = _granted()
    try:
        _take()
    except IntegrityError:
        answer = errors.server_error(RequestFactory().post("/api/v1/anything"))
    assert (answer.status_code, b"no active administrator would remain" in answer.content) == (409, True)
    assert state(user)[1] == [ADMINISTRATOR]


@pytest.mark.parametrize("kind", ADMINISTRATORS)
def test_a_command_whose_commit_takes_the_last_administrator_says_so(kind: str) -> None:
    before = state(ADMINISTRATORS[kind]())
    with pytest.raises(CommandError, match="nothing is changed: no active administrator would remain"):
        record(_take, ["manage.py", "account", "end-sessions", "chief"])
    assert state(User.objects.get()) == before


def test_housekeeping_shortens_the_identity_of_the_last_administrator(settings: Settings) -> None:
    """The provider decides on it, as by a refusal: no login there for so long suspends all."""
    now = timezone.now()
    times = {"verified_at": now - timedelta(days=10), "valid_until": now + timedelta(days=4)}
    for name, role in (("chief", "administrator"), ("other", "operator")):
        identity_of(builders.user(name), role, **times)
    settings.GRIDCAST_OIDC_VALID_DAYS = 9
    assert identities.suspend_overdue(now) == 2
    assert not Identity.objects.filter(suspended="").exists()


def test_identities_are_bound_to_an_issuer_while_the_last_administrator_is_overdue(
    settings: Settings,
) -> None:
    now = timezone.now()
    identity_of(builders.user("chief"), "administrator", valid_until=now - timedelta(days=1))
    settings.GRIDCAST_IDENTITY_PROVIDER = provider("https://new.example.org")
    call_command("account", "bind-issuer", "https://id.example.org")
    assert Identity.objects.get().issuer == "https://new.example.org"
