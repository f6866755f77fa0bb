"""``manage.py account``: accounts from the command line, with the rules and the record of the pages."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.management.recorded_commands import RecordingUtility
from monitor.models import AuditEvent, Site
from monitor.models.role import UserRole
from monitor.web.accounts import users
from monitor.web.accounts.users import InvalidName
from tests.databases import blocks_another_session
from tests.monitor.web.accounts.logins import is_logged_in, log_in
from tests.monitor.web.pages import builders
from tests.waiting import eventually

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "staple battery horse"


@pytest.fixture
def chief() -> User:
    user = builders.user("chief")
    roles.grant(user, Grant(UserRole.ADMINISTRATOR))
    return User.objects.get(pk=user.pk)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let standard input have a text."""

    def with_text(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return with_text


def test_an_account_is_created_with_roles_and_its_password_read_from_standard_input(typed: Any) -> None:
    Site.objects.create(name="ncsa")
    typed(f"{NEW_PASSWORD}\n")
    printed = io.StringIO()
    given = ("--role", "operator", "--role", "site_admin:ncsa")
    call_command("account", "create", "ada", "--stdin", *given, "--email", "ada@example.org", stdout=printed)
    assert printed.getvalue() == "ada created: operator, site_admin:ncsa.\n"
    user = User.objects.get(username="ada")
    assert (user.check_password(NEW_PASSWORD), user.email) == (True, "ada@example.org")
    assert roles.grants_of(user) == [Grant(UserRole.OPERATOR), Grant(UserRole.SITE_ADMIN, "ncsa")]


def test_an_account_without_a_password_is_for_a_proxy() -> None:
    call_command("account", "create", "ada", "--no-password", stdout=io.StringIO())
    assert not User.objects.get().has_usable_password()


@pytest.mark.parametrize(
    ("arguments", "password", "message"),
    [
        (["Chief"], NEW_PASSWORD, "there is an account 'chief' already"),
        (["ch\u0456ef"], NEW_PASSWORD, "expected 1 to 150 ASCII letters"),
        (["ada", "--role", "boss"], NEW_PASSWORD, "expected one of the roles"),
        (["ada", "--role", "site_admin:nowhere"], NEW_PASSWORD, "there is no site 'nowhere'"),
        (["ada", "--email", "nowhere"], NEW_PASSWORD, "email: Enter a valid email address"),
        (["ada"], "short", "at least 10 characters"),
        (["ada"], "", "no password for ada on standard input"),
    ],
)
def test_a_value_that_is_not_accepted_creates_nothing(
    chief: User, typed: Any, arguments: list[str], password: str, message: str
) -> None:
    typed(password)
    with pytest.raises(CommandError, match=message):
        call_command("account", "create", *arguments, "--stdin")
    assert User.objects.count() == 1


def test_without_a_terminal_a_password_has_to_be_sent(typed: Any) -> None:
    typed(NEW_PASSWORD)
    with pytest.raises(CommandError, match="send it with --stdin"):
        call_command("account", "create", "ada")


def test_a_new_password_ends_the_sessions_and_its_record_does_not_have_it(typed: Any) -> None:
    user, browser = builders.user("ada", password=builders.PASSWORD), Client(REMOTE_ADDR="198.51.100.9")
    log_in(browser, user)
    typed(NEW_PASSWORD)
    arguments = ["manage.py", "account", "password", "ada", "--stdin"]
    RecordingUtility(arguments).fetch_command("account").execute(
        action="password",
        user="ada",
        stdin=True,
        stdout=io.StringIO(),
        force_color=False,
        no_color=True,
        skip_checks=True,
    )
    assert User.objects.get().check_password(NEW_PASSWORD)
    assert not is_logged_in(browser)
    event = AuditEvent.objects.get(channel="command")
    assert event.changes[0] == {"kind": "password", "name": "ada", "before": "set", "after": "set anew"}
    assert NEW_PASSWORD not in f"{event.target} {json.dumps(event.changes)}"


def test_an_account_is_disabled_and_enabled_but_not_the_last_administrator(chief: User) -> None:
    user, printed = builders.user("ada"), io.StringIO()
    UserSession.objects.create(user=user, session_key="x" * 32, ip="192.0.2.1")
    call_command("account", "disable", "ada", stdout=printed)
    assert printed.getvalue() == "ada is disabled; 1 session ended, and its tokens stop.\n"
    assert not User.objects.get(pk=user.pk).is_active
    call_command("account", "enable", "ada", stdout=printed)
    assert User.objects.get(pk=user.pk).is_active
    with pytest.raises(CommandError, match="last active administrator"):
        call_command("account", "disable", "chief")
    assert User.objects.get(pk=chief.pk).is_active


def test_an_account_that_is_disabled_or_enabled_already_stays_as_it_is(chief: User) -> None:
    builders.user("ada")
    printed = io.StringIO()
    for action in ("enable", "disable", "disable"):
        call_command("account", action, "ada", stdout=printed)
    assert printed.getvalue().splitlines() == [
        "ada is enabled already: nothing is changed.",
        "ada is disabled; 0 sessions ended, and its tokens stop.",
        "ada is disabled already: nothing is changed.",
    ]


@pytest.mark.django_db(transaction=True)
def test_two_names_that_differ_in_case_are_not_created_at_once() -> None:
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            users.create("ada", None)
            other = thread.submit(_created, "Ada")
            assert eventually(blocks_another_session)
        with pytest.raises(InvalidName, match="there is an account 'ada' already"):
            other.result(60)
    assert User.objects.count() == 1


def _created(name: str) -> None:
    try:
        users.create(name, None)
    finally:
        connection.close()
