from __future__ import annotations

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from monitor.web.accounts.first_administrator import create_first_administrator

pytestmark = pytest.mark.django_db
Accounts = list[tuple[str, str]]


def create() -> Accounts:
    announced: Accounts = []
    create_first_administrator(lambda *account: announced.append(account))
    return announced


def test_the_announced_password_opens_the_first_account() -> None:
    [(name, password)] = create()
    user = authenticate(username=name, password=password)
    assert isinstance(user, User)
    assert (user.username, user.is_superuser, user.is_staff) == ("admin", True, True)


def test_there_is_only_one_first_administrator() -> None:
    create()
    assert create() == []


def test_an_administrator_of_another_name_suffices() -> None:
    User.objects.create_superuser("ada", password="something long")
    assert create() == []


def test_an_ordinary_user_called_admin_stays_an_ordinary_user() -> None:
    User.objects.create_user("admin")
    assert [name for name, _ in create()] == ["admin-2"]
    assert not User.objects.get(username="admin").is_superuser


def test_a_disabled_administrator_is_replaced() -> None:
    User.objects.create_superuser("ada", is_active=False)
    assert [name for name, _ in create()] == ["admin"]


def test_a_password_that_cannot_be_shown_leaves_no_account() -> None:
    def closed(_name: str, _password: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        create_first_administrator(closed)
    assert not User.objects.exists()
