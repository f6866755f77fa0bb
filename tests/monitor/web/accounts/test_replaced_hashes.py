"""A hash of an earlier version is replaced when the password is entered, and nothing ends by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from django.contrib.auth.hashers import identify_hasher, make_password
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from monitor.models import AuditEvent
from monitor.web.accounts import passwords, users
from tests.monitor.web.accounts.logins import confirm, is_logged_in, log_in
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
Browsers = Callable[[], Client]
OLD = "django.contrib.auth.hashers.PBKDF2PasswordHasher"  # of earlier versions, as in the settings
NEW_PASSWORD = "staple battery horse"


def old_hash(password: str = builders.PASSWORD) -> str:
    return make_password(password, hasher="pbkdf2_sha256")


@pytest.fixture
def old(reader: User, settings: Settings) -> User:
    """A user of before an upgrade, whose hash is of an earlier version."""
    settings.PASSWORD_HASHERS = [*settings.PASSWORD_HASHERS, OLD]
    User.objects.filter(pk=reader.pk).update(password=old_hash())
    return User.objects.get(pk=reader.pk)


def is_replaced(user: User) -> bool:
    return identify_hasher(User.objects.get(pk=user.pk).password).algorithm != "pbkdf2_sha256"


def _change_to_a_common_password(browser: Client) -> None:
    form = {"old_password": builders.PASSWORD, "new_password1": "password", "new_password2": "password"}
    assert browser.post("/account/password/", form).status_code == 200


# Where a user enters the password, in the browser of a session; a login is in another browser.
DOORS: Mapping[str, Callable[[Client], object]] = {
    "confirmation": confirm,
    "refused new password": _change_to_a_common_password,
}


@pytest.fixture
def sessions_of_before(old: User, settings: Settings, browser_elsewhere: Browsers) -> list[Client]:
    """Two sessions that began while the hash was one of the version of then."""
    hashers = settings.PASSWORD_HASHERS
    settings.PASSWORD_HASHERS = [OLD]
    browsers = [browser_elsewhere(), browser_elsewhere()]
    for each in browsers:
        log_in(each, old)
    settings.PASSWORD_HASHERS = hashers
    assert not is_replaced(old)
    return browsers


@pytest.fixture
def _none_by_django(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's own check would replace the hash, and end the sessions."""

    def refused(*_: object) -> bool:
        raise AssertionError("use passwords.is_right")

    monkeypatch.setattr(User, "check_password", refused)


@pytest.mark.usefixtures("_none_by_django")
@pytest.mark.parametrize("door", DOORS)
def test_the_sessions_go_on_wherever_the_password_is_entered(
    door: str, old: User, sessions_of_before: list[Client]
) -> None:
    DOORS[door](sessions_of_before[0])
    assert is_replaced(old)
    assert [is_logged_in(each) for each in sessions_of_before] == [True, True]


@pytest.mark.usefixtures("_none_by_django")
def test_a_login_ends_no_other_session(
    old: User, sessions_of_before: list[Client], browser_elsewhere: Browsers
) -> None:
    browser = browser_elsewhere()
    log_in(browser, old)
    assert is_replaced(old)
    assert [is_logged_in(each) for each in (browser, *sessions_of_before)] == [True, True, True]
    changes = [change["kind"] for event in AuditEvent.objects.all() for change in event.changes]
    assert set(changes) == {"session"}, "logged in, three times"


def test_a_wrong_password_replaces_nothing(old: User, browser: Client) -> None:
    log_in(browser, old, "wrong")
    assert not is_replaced(old)
    assert not is_logged_in(browser)


def test_a_password_that_is_set_at_the_same_moment_stays(old: User) -> None:
    read_before = User.objects.get(pk=old.pk)
    users.set_password(old, NEW_PASSWORD)
    stored = User.objects.get(pk=old.pk).password
    assert not passwords.is_right(read_before, builders.PASSWORD)
    assert User.objects.get(pk=old.pk).password == stored


def test_of_two_logins_at_once_both_are_right(old: User) -> None:
    read_before = User.objects.get(pk=old.pk)
    assert passwords.is_right(old, builders.PASSWORD)
    assert passwords.is_right(read_before, builders.PASSWORD)
    assert read_before.password == old.password == User.objects.get(pk=old.pk).password


def test_the_password_of_a_user_that_was_deleted_at_the_same_moment_is_not_right(old: User) -> None:
    read_before = User.objects.get(pk=old.pk)
    old.delete()
    assert not passwords.is_right(read_before, builders.PASSWORD)
