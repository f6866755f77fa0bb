"""What ``manage.py check`` says about who can log in, and the accounts of ``GRIDCAST_LOCAL_LOGIN``."""

from __future__ import annotations

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from pytest_django import Settings

from monitor.access import roles
from monitor.access.roles import Grant
from monitor.accounts import account_checks
from monitor.accounts.environment import LocalLogin
from monitor.models.role import UserRole

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
    assert fault.msg.startswith(
        "No administrator can log in: keyed without a password, a passkey that logs in"
    )
    account("chief", UserRole.ADMINISTRATOR)
    assert account_checks.accounts() == []


def test_a_depot_without_an_administrator_is_told_so() -> None:
    account("vera", UserRole.VIEWER)
    [fault] = account_checks.accounts()
    assert fault.msg == "There is no active administrator."
