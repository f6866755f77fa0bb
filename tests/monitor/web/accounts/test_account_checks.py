"""What ``manage.py check`` says about who can log in, and the accounts of ``GRIDCAST_LOCAL_LOGIN``."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models.role import UserRole
from monitor.web.accounts import account_checks, identities
from monitor.web.accounts.environment import LocalLogin
from tests.monitor.web.accounts.identities import PROVIDER, identity_of
from tests.monitor.web.accounts.logins import log_in
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db


def checked(settings: Settings, *names: str) -> list[str]:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset(names))
    return [fault.msg for fault in account_checks.accounts()]


def account(name: str, role: UserRole, **fields: object) -> User:
    user = User.objects.create(username=name, **{"password": make_password("secret"), **fields})
    roles.grant(user, Grant(role))
    return user


def test_one_active_administrator_with_a_password_is_enough(settings: Settings) -> None:
    account("chief", UserRole.ADMINISTRATOR)
    account("vera", UserRole.VIEWER)
    assert checked(settings, "chief", "vera") == []


def test_names_without_an_account_are_listed(settings: Settings) -> None:
    account("chief", UserRole.ADMINISTRATOR)
    assert checked(settings, "chief", "chef", "root") == [
        "GRIDCAST_LOCAL_LOGIN names accounts that do not exist: chef, root."
    ]


def test_each_account_that_cannot_open_the_service_is_named_with_the_reason(settings: Settings) -> None:
    account("root", UserRole.ADMINISTRATOR)  # else the database refuses to disable the last one
    account("away", UserRole.ADMINISTRATOR, is_active=False)
    account("keyed", UserRole.ADMINISTRATOR, password=make_password(None))
    account("vera", UserRole.VIEWER)
    [message] = checked(settings, "away", "keyed", "vera")
    assert "expected everybody, nobody, or names of accounts, separated by commas" in message
    assert message.endswith(
        "away is disabled; keyed has no password; vera is no administrator by a role granted here."
    )


@pytest.mark.parametrize("text", ["none", "admin root2"])
def test_a_word_that_is_no_account_is_shown_with_the_accepted_words(settings: Settings, text: str) -> None:
    message = checked(settings, text)[-1]
    assert message.startswith("GRIDCAST_LOCAL_LOGIN: expected everybody, nobody, or names of accounts")
    assert message.endswith(f" {text} does not exist.")


def test_administrators_that_cannot_log_in_are_named(settings: Settings) -> None:
    assert account_checks.accounts() == [], "nobody has started the service yet"
    account("keyed", UserRole.ADMINISTRATOR, password=make_password(None))
    [fault] = account_checks.accounts()
    words = "keyed: it has neither a password nor a passkey that logs in"
    assert fault.msg == f"No administrator can log in: {words}."
    account("chief", UserRole.ADMINISTRATOR)
    assert account_checks.accounts() == []


def _nothing_to_enter(settings: Settings) -> None:
    account("keyed", UserRole.ADMINISTRATOR, password=make_password(None))


def _closed_to_all(settings: Settings) -> None:
    account("chief", UserRole.ADMINISTRATOR)
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset())
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER


def _provider_moved(settings: Settings) -> None:
    """The password opens the account as a viewer."""
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    identity_of(account("ada", UserRole.VIEWER), "administrator", issuer="https://old.example.org")


def _provider_removed(settings: Settings) -> None:
    identity_of(account("ada", UserRole.VIEWER), "administrator")


def _dismissed(settings: Settings) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    identity = identity_of(User.objects.create(username="ada"), "administrator")
    identities.suspend(identity, "no group", timezone.now())


LOCKED_OUT: dict[str, tuple[Callable[[Settings], None], str]] = {
    "without a password": (_nothing_to_enter, "keyed: it has neither a password nor a passkey that logs in."),
    "closed to all": (
        _closed_to_all,
        "chief: GRIDCAST_LOCAL_LOGIN=nobody closes the local login of all accounts.",
    ),
    "provider moved": (
        _provider_moved,
        "ada: its roles come from https://old.example.org, but the configured identity provider is"
        " https://id.example.org.",
    ),
    "no provider": (
        _provider_removed,
        "ada: its roles come from https://id.example.org, and no identity provider is configured now.",
    ),
    "suspended": (_dismissed, "ada: its roles come from Grid Login; they are suspended: no group."),
}


@pytest.mark.parametrize("case", LOCKED_OUT)
def test_the_reason_why_no_administrator_can_log_in_is_true_and_the_hint_helps(
    case: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    happens, reason = LOCKED_OUT[case]
    happens(settings)
    [fault] = account_checks.accounts()
    assert (fault.id, fault.msg) == ("monitor.W023", f"No administrator can log in: {reason}")
    assert fault.hint is not None
    name = reason.partition(":")[0]
    for command in re.findall(r"manage\.py ((?:access|account) [a-z]+ USER(?: administrator)?)", fault.hint):
        monkeypatch.setattr("sys.stdin", io.StringIO(builders.PASSWORD))
        options = ["--stdin"] if command.startswith("account password") else []
        call_command(*command.replace("USER", name).split(), *options, stdout=io.StringIO())
    assert account_checks.accounts() == []
    log_in(client, name)
    assert client.get("/access/").status_code == 200


@pytest.mark.parametrize("names", [None, frozenset[str]()])
def test_an_administrator_by_the_provider_can_log_in_there(
    names: frozenset[str] | None, settings: Settings
) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(names)
    identity_of(User.objects.create(username="ada"), "administrator")
    assert account_checks.accounts() == []


def test_a_depot_without_an_administrator_is_told_so() -> None:
    account("vera", UserRole.VIEWER)
    [fault] = account_checks.accounts()
    assert fault.msg == "There is no active administrator."
