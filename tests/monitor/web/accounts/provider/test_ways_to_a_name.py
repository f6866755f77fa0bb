"""By whatever way an account gets its name, that does not look like the name of another account."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.management.commands import prepare_demo
from monitor.models.role import UserRole
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts import users
from monitor.web.accounts.environment import RemoteUser
from monitor.web.accounts.first_administrator import create_first_administrator
from monitor.web.accounts.users import NameTaken
from tests.monitor.web.accounts.logins import as_confirmed, is_logged_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
MONITOR = Path(users.__file__).parents[2]
Way = Callable[[str], Any]
# Names of accounts, and names that look like them.
ANY_ASCII = [("reader", "READER"), ("wei\N{LATIN SMALL LETTER SHARP S}", "weiss")]
ANY_ASCII += [("\N{LATIN SMALL LETTER ALPHA}da", "ada"), ("ren\N{LATIN SMALL LETTER E WITH ACUTE}", "Rene")]
SEEN_BY_ADMINISTRATORS = [("admin", "adrnin"), ("root", "r0ot"), ("paul", "PauI"), ("user1", "userl")]
FOREIGN = [
    ("admin", "adm\N{LATIN SMALL LETTER DOTLESS I}n"),
    ("admin", "\N{LATIN SMALL LETTER ALPHA}dmin"),
    ("admin", "admi\N{LATIN SMALL LETTER N WITH LONG RIGHT LEG}"),
    ("admin", "admi\N{LATIN SMALL LETTER N WITH DOT BELOW}"),
    ("ADMIN", "\N{LATIN SMALL LETTER A WITH MACRON}dmin"),
    ("admin", "\N{FULLWIDTH LATIN SMALL LETTER A}dmin"),
    ("l\N{LATIN SMALL LETTER O WITH STROKE}k", "lok"),
]


@pytest.fixture
def by_command() -> Way:
    def create(name: str) -> None:
        with suppress(CommandError):
            call_command("account", "create", name, "--no-password", stdout=io.StringIO())

    return create


@pytest.fixture
def by_page() -> Way:
    chief = builders.user("chief")
    roles.grant(chief, Grant(UserRole.ADMINISTRATOR))
    browser = Client()
    browser.force_login(chief)
    return lambda name: as_confirmed(browser, chief).post("/access/users/new/", {"name": name})


@pytest.fixture
def by_user_name(browser: Client, op: OpenIdProvider) -> Way:
    def log_in(name: str) -> None:
        op.claims["preferred_username"] = name
        op.log_in(browser)

    return log_in


@pytest.fixture
def by_address(browser: Client, op: OpenIdProvider) -> Way:
    """The provider names no user name."""

    def log_in(name: str) -> None:
        op.claims |= {"preferred_username": None, "email": name}
        op.log_in(browser)

    return log_in


@pytest.fixture
def by_address_beside_no_name(browser: Client, op: OpenIdProvider) -> Way:
    """The provider's user name is not one that accounts have."""

    def log_in(name: str) -> None:
        op.claims |= {"preferred_username": "e v e", "given_name": "Eve", "email": name}
        op.log_in(browser)

    return log_in


@pytest.fixture
def by_proxy(settings: Settings) -> Way:
    proxies = Proxies((), is_unix=True)
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", proxies, "viewer")
    settings.GRIDCAST_PROXIES = proxies
    return lambda name: Client(REMOTE_ADDR="").get("/account/", headers={"remote-user": name})


ADMINISTRATORS, ADDRESSES = ["by_command", "by_page"], ["by_address", "by_address_beside_no_name"]
BY_ITSELF = (*ANY_ASCII, *SEEN_BY_ADMINISTRATORS)
WAYS = {
    **dict.fromkeys(ADMINISTRATORS, tuple(ANY_ASCII)),
    **dict.fromkeys(["by_proxy", *ADDRESSES], BY_ITSELF),
    "by_user_name": (*BY_ITSELF, *FOREIGN),
}
CASES = [(way, *pair) for way, pairs in WAYS.items() for pair in pairs]


@pytest.mark.parametrize(("way", "there", "named"), CASES)
def test_no_way_makes_an_account_whose_name_looks_like_another(
    way: str, there: str, named: str, request: pytest.FixtureRequest
) -> None:
    make: Way = request.getfixturevalue(way)
    end = "@example.org" if way in ADDRESSES else ""
    builders.user(f"{there}{end}")
    number = User.objects.count()
    make(f"{named}{end}")
    assert User.objects.count() == number
    make(f"other{end}")
    assert User.objects.count() == number + 1, "and the way makes accounts"


@pytest.mark.parametrize(("there", "named"), SEEN_BY_ADMINISTRATORS)
@pytest.mark.parametrize("way", ADMINISTRATORS)
def test_an_administrator_that_sees_both_may_create_both(
    way: str, there: str, named: str, request: pytest.FixtureRequest
) -> None:
    """Else a user whose name is refused elsewhere would never get an account."""
    builders.user(there)
    request.getfixturevalue(way)(named)
    assert User.objects.filter(username=named).exists()


@pytest.mark.parametrize(("there", "named"), [*SEEN_BY_ADMINISTRATORS, *FOREIGN])
def test_an_account_of_before_stays_usable(
    there: str, named: str, browser: Client, op: OpenIdProvider, settings: Settings
) -> None:
    """It was made before the other one, or before names were compared like this."""
    op.log_in(browser)
    User.objects.update(username=named)
    builders.user(there)
    op.claims["preferred_username"] = named
    again = Client()
    op.log_in(again)
    assert is_logged_in(again)
    assert User.objects.count() == 2


@pytest.mark.parametrize(("there", "named"), SEEN_BY_ADMINISTRATORS)
def test_an_account_of_before_stays_usable_behind_a_proxy(there: str, named: str, by_proxy: Way) -> None:
    by_proxy(named)
    builders.user(there)
    assert by_proxy(named).status_code == 200


def test_the_first_administrator_and_the_accounts_of_the_demo_look_like_no_other() -> None:
    builders.user("\N{LATIN SMALL LETTER ALPHA}dmin")
    builders.user("v\N{LATIN SMALL LETTER DOTLESS I}ewer")
    names: list[str] = []
    create_first_administrator(lambda name, _: names.append(name))
    assert names == ["admin-2"]
    with pytest.raises(NameTaken):
        prepare_demo._user("viewer")
    assert prepare_demo._user("operator") == prepare_demo._user("operator")


MAKING = {"create", "create_user", "create_superuser", "get_or_create", "update_or_create", "bulk_create"}


def makes_or_names_users(node: ast.AST) -> bool:
    """Whether *node* is ``User(...)``, ``User.objects.create(...)`` or the like, or sets ``.username``."""
    if isinstance(node, ast.Attribute) and node.attr == "username":
        return isinstance(node.ctx, ast.Store)
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    return called in {"User", *(f"User.objects.{verb}" for verb in MAKING)}


def test_no_other_place_makes_or_names_an_account() -> None:
    """One that does has to lock and check the name, and to be among the ways above."""
    places = {
        file.relative_to(MONITOR).as_posix()
        for file in MONITOR.rglob("*.py")
        if any(map(makes_or_names_users, ast.walk(ast.parse(file.read_text(encoding="utf-8")))))
    }
    assert places == {
        "web/accounts/users.py",  # for administrators: commands and pages
        "web/accounts/remote_user.py",
        "web/metrics/scope.py",  # a user that is not stored
        "web/pages/access.py",  # the same, in the place of the one that the form creates
        "analysis/webhooks/announce_sites.py",  # a user that is not stored
    }
