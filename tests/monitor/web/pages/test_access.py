"""The pages of accounts: administrators alone change them, after a confirmation, with a record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AlertRule, ApiToken, AuditEvent, Identity, Suite
from monitor.models.role import UserRole, act_as
from monitor.web.accounts.environment import LocalLogin
from monitor.web.pages import access
from tests.monitor.depot.access.decisions import PAGES
from tests.monitor.web.accounts.identities import PROVIDER, identity_of
from tests.monitor.web.accounts.logins import as_confirmed, confirm, is_logged_in, log_in
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "staple battery horse"
CHANGES = sorted(route for route, (_, sent) in PAGES.items() if route.startswith("access/") and sent)


@pytest.fixture
def chief() -> User:
    user = builders.user("chief", password=builders.PASSWORD)
    roles.grant(user, Grant(UserRole.ADMINISTRATOR))
    return User.objects.get(pk=user.pk)


@pytest.fixture
def browser(chief: User) -> Client:
    """A browser of the administrator, after a confirmation."""
    client = Client()
    client.force_login(chief)
    return as_confirmed(client, chief)


@pytest.fixture
def ada() -> User:
    return builders.user("ada", password=builders.PASSWORD, email="ada@example.org")


def change(browser: Client, subject: User | Group, verb: str, **values: object) -> Any:
    noun = "users" if isinstance(subject, User) else "groups"
    return browser.post(f"/access/{noun}/{subject.pk}/{verb}/", values)


def refusal(answer: Any) -> str:
    """Return why the form was refused."""
    assert answer.status_code == 409
    return " ".join(text for texts in answer.context["form"].errors.values() for text in texts)


def recorded() -> list[tuple[str, str, Any, Any]]:
    """Return what the newest event has of changes."""
    changes = AuditEvent.objects.order_by("pk").last()
    return (
        [(each["kind"], each["name"], each["before"], each["after"]) for each in changes.changes]
        if changes
        else []
    )


# What an administrator changes: before, the values of the form from what came of that, and the record.


def _nothing(ada: User) -> dict[str, object]:
    return {}


def _operator(ada: User) -> dict[str, object]:
    roles.grant(ada, Grant(UserRole.OPERATOR))
    return {"grant": "operator"}


def _new_group(ada: User) -> dict[str, object]:
    return {"group": Group.objects.create(name="physicists").pk}


def _member(ada: User) -> dict[str, object]:
    ada.groups.add(group := Group.objects.create(name="physicists"))
    return {"group": group.pk}


def _permission(ada: User) -> dict[str, object]:
    return {"permission": Permission.objects.get(codename="run_series").pk}


def _permitted(ada: User) -> dict[str, object]:
    ada.user_permissions.add(Permission.objects.get(codename="run_series"))
    return _permission(ada)


def _disabled(ada: User) -> dict[str, object]:
    User.objects.filter(pk=ada.pk).update(is_active=False)
    return {}


def _factor(ada: User) -> dict[str, object]:
    return {"factor": Authenticator.objects.create(user=ada, type="totp", data={"secret": "x"}).pk}


def _session(ada: User) -> dict[str, object]:
    browser = Client()
    browser.force_login(ada)
    key = browser.session.session_key
    return {"session": UserSession.objects.create(user=ada, session_key=key, ip="192.0.2.1").pk}


def _identity(ada: User) -> dict[str, object]:
    return {"identity": identity_of(ada, "operator").pk}


def _token(ada: User) -> dict[str, object]:
    ApiToken.objects.issue(ada, "nightly", ["read"])
    return {"token": ApiToken.objects.get().pk}


Prepare = Callable[[User], dict[str, object]]
USER_CHANGES: Mapping[str, tuple[Prepare, dict[str, str], tuple[str, str, Any, Any]]] = {
    "grant": (_nothing, {"role": "viewer"}, ("role", "ada: viewer", None, "granted")),
    "revoke": (_operator, {}, ("role", "ada: operator", "granted", "revoked")),
    "join": (_new_group, {}, ("group", "physicists: ada", None, "member")),
    "leave": (_member, {}, ("group", "physicists: ada", "member", "no member")),
    "permit": (_permission, {}, ("permission", "ada: monitor.run_series", None, "granted")),
    "forbid": (_permitted, {}, ("permission", "ada: monitor.run_series", "granted", "revoked")),
    "disable": (_nothing, {}, ("account", "ada", "active", "disabled")),
    "enable": (_disabled, {}, ("account", "ada", "disabled", "active")),
    "password": (
        _nothing,
        {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD},
        ("password", "ada", "set", "set anew"),
    ),
    "remove-factor": (_factor, {}, ("second factor", "ada", "totp", None)),
    "end-sessions": (_session, {}, ("sessions", "ada", 1, "ended")),
    "disconnect": (
        _identity,
        {},
        ("identity", "ada: ada-1 of https://id.example.org", "connected", "disconnected"),
    ),
    "profile": (
        _nothing,
        {"first_name": "Ada", "email": "ada@example.net"},
        (
            "account",
            "ada",
            {"first_name": "", "email": "ada@example.org"},
            {"first_name": "Ada", "email": "ada@example.net"},
        ),
    ),
}


@pytest.mark.parametrize("verb", USER_CHANGES)
def test_a_change_of_a_user_is_made_and_recorded(browser: Client, ada: User, verb: str) -> None:
    prepare, values, expected = USER_CHANGES[verb]
    form = {**prepare(ada), **values}
    page = browser.get(f"/access/users/{ada.pk}/{verb}/?{urlencode(form)}")
    assert (page.status_code, page.context["hindrance"]) == (200, "")
    answer = change(browser, ada, verb, **form)
    assert (answer.status_code, answer["Location"]) == (302, f"/access/users/{ada.pk}/")
    assert recorded() == [expected]
    assert browser.get(answer["Location"]).status_code == 200


def test_a_token_of_a_user_is_revoked_with_its_family(browser: Client, ada: User) -> None:
    form = _token(ada)
    change(browser, ada, "revoke-token", **form, family="on")
    assert ApiToken.objects.get().revoked_at is not None
    assert [kind for kind, *_ in recorded()] == ["token"]


def test_the_record_of_a_password_does_not_have_it(browser: Client, ada: User) -> None:
    change(browser, ada, "password", password1=NEW_PASSWORD, password2=NEW_PASSWORD)
    browser.post("/access/users/new/", {"name": "bob", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD})
    events = [f"{event.target} {json.dumps(event.changes)}" for event in AuditEvent.objects.all()]
    assert len(events) == 2
    assert not [
        text for text in events if "staple" in text or User.objects.get(username="bob").password in text
    ]


def test_a_new_password_opens_the_account_and_ends_its_sessions(browser: Client, ada: User) -> None:
    before = Client(REMOTE_ADDR="198.51.100.1")
    log_in(before, ada)
    assert is_logged_in(before)
    change(browser, ada, "password", password1=NEW_PASSWORD, password2=NEW_PASSWORD)
    assert not is_logged_in(before)
    after = Client(REMOTE_ADDR="198.51.100.2")
    log_in(after, ada, NEW_PASSWORD)
    assert is_logged_in(after)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("short", "short", "at least 10 characters"),
        ("1234567890", "1234567890", "entirely numeric"),
        ("ada@example.org", "ada@example.org", "too similar to the email"),
        (NEW_PASSWORD, "another one", "passwords differ"),
        ("", "", "required"),
    ],
)
def test_a_password_that_is_not_accepted_changes_nothing(
    browser: Client, ada: User, first: str, second: str, message: str
) -> None:
    assert message in refusal(change(browser, ada, "password", password1=first, password2=second))
    assert User.objects.get(pk=ada.pk).check_password(builders.PASSWORD)


@pytest.mark.parametrize("route", CHANGES)
def test_each_change_asks_for_confirmation_before_its_form_is_opened_or_sent(
    route: str, browser: Client, chief: User, ada: User
) -> None:
    group = Group.objects.create(name="physicists")
    path = "/" + route.replace("<int:pk>", str(group.pk if "groups" in route else ada.pk))
    before = list(User.objects.values()), list(Group.objects.values())
    as_confirmed(browser, chief, seconds_ago=301)
    for method in (browser.get, browser.post):
        answer = method(path, {"name": "ada", "role": "operator"})
        assert (answer.status_code, answer["Location"][:30]) == (302, "/account/confirm/password/?nex")
    assert (list(User.objects.values()), list(Group.objects.values())) == before
    assert not AuditEvent.objects.exists()
    assert confirm(browser, next_path=path)["Location"] == path
    page = browser.get(path)
    assert page.status_code == 200
    assert "Not changed yet" in page.content.decode(), "it says so to the user that sent the form"


def test_an_operator_sees_no_page_of_accounts(ada: User) -> None:
    operator = builders.browser_of("olga", UserRole.OPERATOR)
    as_confirmed(operator, User.objects.get(username="olga"))
    for path in ("", "users/new/", f"users/{ada.pk}/", f"users/{ada.pk}/password/", "groups/", "groups/new/"):
        for method in (operator.get, operator.post):
            assert method(f"/access/{path}").status_code == 403, path
    assert "Users and roles" not in operator.get("/settings/").content.decode()


def test_a_user_is_created_with_a_role_and_logs_in(browser: Client) -> None:
    form = {"name": "bob", "email": "bob@example.org", "role": "operator"}
    answer = browser.post(
        "/access/users/new/", {**form, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    )
    bob = User.objects.get(username="bob")
    assert answer["Location"] == f"/access/users/{bob.pk}/"
    assert roles.grants_of(bob) == [Grant(UserRole.OPERATOR)]
    assert recorded() == [
        ("account", "bob", None, {"email": "bob@example.org", "password": "set"}),
        ("role", "bob: operator", None, "granted"),
    ]
    own = Client(REMOTE_ADDR="198.51.100.3")
    log_in(own, bob, NEW_PASSWORD)
    assert is_logged_in(own)


def test_a_refused_user_is_not_created_and_what_was_typed_stays(browser: Client) -> None:
    form = {"name": "bob", "first_name": "Bob", "role": "site_admin"}
    answer = browser.post("/access/users/new/", form)
    assert "is granted at a site" in refusal(answer)
    assert answer.context["form"]["first_name"].value() == "Bob"
    assert "email address" in refusal(browser.post("/access/users/new/", {"name": "bob", "email": "bob"}))
    assert not User.objects.filter(username="bob").exists()


@pytest.mark.parametrize("name", ["Ada", "\u0430da", "\uff41da", "ad\u200ba", "a,b", "", "x" * 151])
def test_a_name_that_looks_like_another_one_is_refused(browser: Client, ada: User, name: str) -> None:
    """Upper case, a Cyrillic letter, full width, an invisible character."""
    assert refusal(browser.post("/access/users/new/", {"name": name, "role": "viewer"}))
    assert User.objects.count() == 2


def test_a_user_without_a_password_cannot_log_in_by_one(browser: Client) -> None:
    browser.post("/access/users/new/", {"name": "bob"})
    assert not User.objects.get(username="bob").has_usable_password()
    assert recorded() == [("account", "bob", None, {"password": "none"})]


def test_the_last_administrator_keeps_the_role_and_the_account(browser: Client, chief: User) -> None:
    assert "last active administrator" in refusal(change(browser, chief, "revoke", grant="administrator"))
    for verb in ("disable", "delete", "password", "end-sessions"):
        page = browser.get(f"/access/users/{chief.pk}/{verb}/")
        assert "This is your own account" in page.content.decode()
        assert change(browser, chief, verb, name="chief").status_code == 409
    assert User.objects.get(pk=chief.pk).is_active


def test_an_administrator_gives_the_role_back_if_another_one_remains(
    browser: Client, chief: User, ada: User
) -> None:
    roles.grant(ada, Grant(UserRole.ADMINISTRATOR))
    assert change(browser, chief, "revoke", grant="administrator")["Location"] == "/account/"
    assert browser.get("/access/").status_code == 403
    assert not User.objects.get(pk=chief.pk).is_superuser


# Which users each state of the list has, by what there is of them.


def _by_two(ada: User) -> None:
    identity_of(ada, "viewer")
    identity_of(ada, "viewer", suspended="no group", suspended_at=timezone.now())


def _overdue(ada: User) -> None:
    """The housekeeping has not noted it yet."""
    identity_of(ada, "administrator", valid_until=timezone.now())


LISTED: Mapping[str, tuple[Callable[[User], object], set[str]]] = {
    "local": (lambda ada: None, {"", "active"}),
    "disabled": (lambda ada: User.objects.filter(pk=ada.pk).update(is_active=False), {"", "disabled"}),
    "one suspended identity of two": (_by_two, {"", "active", "suspended"}),
    "overdue": (_overdue, {"", "active", "suspended"}),
    "administrator here": (
        lambda ada: roles.grant(ada, Grant(UserRole.ADMINISTRATOR)),
        {"", "active", "administrator"},
    ),
    "administrator by the provider": (
        lambda ada: identity_of(ada, "administrator"),
        {"", "active", "administrator"},
    ),
}


@pytest.mark.parametrize("case", LISTED)
def test_each_state_lists_the_users_that_are_in_it(case: str, browser: Client, ada: User) -> None:
    happens, states = LISTED[case]
    happens(ada)
    link = f"/access/users/{ada.pk}/"
    listed = {
        state
        for state, _ in access.STATE_LABELS
        if link in browser.get("/access/", {"state": state}).content.decode()
    }
    assert listed == states


def test_each_state_has_a_label() -> None:
    assert {state for state, _ in access.STATE_LABELS} == {"", *access.STATES}


@pytest.mark.parametrize("is_suspended", [True, False])
def test_the_page_that_enables_a_user_promises_no_login_that_is_refused(
    is_suspended: bool, browser: Client, ada: User, settings: Settings
) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    User.objects.filter(pk=ada.pk).update(is_active=False)
    if is_suspended:
        identity_of(ada, "viewer", suspended="no group", suspended_at=timezone.now())
    before = browser.get(f"/access/users/{ada.pk}/enable/").content.decode()
    assert ("stays suspended, with what acts by it: no group" in before) == is_suspended
    after = browser.post(f"/access/users/{ada.pk}/enable/", follow=True).content.decode()
    refused = f"{ada} is enabled, but no login opens the account now: its roles come from Grid Login"
    assert (refused in after) == is_suspended
    assert (log_in(Client(), ada).status_code == 403) == is_suspended


def test_an_identity_is_disconnected_only_where_a_door_remains(
    browser: Client, ada: User, settings: Settings
) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    identity = identity_of(ada, "operator")
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"chief"}))
    assert "could not log in any more" in refusal(change(browser, ada, "disconnect", identity=identity.pk))
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(None)
    ada.set_unusable_password()
    ada.save()
    assert "could not log in any more" in refusal(change(browser, ada, "disconnect", identity=identity.pk))
    other = identity_of(ada, "viewer", suspended="no group", suspended_at=timezone.now())
    assert change(browser, ada, "disconnect", identity=identity.pk).status_code == 302
    assert list(Identity.objects.all()) == [other]
    change(browser, ada, "password", password1=NEW_PASSWORD, password2=NEW_PASSWORD)
    assert change(browser, ada, "disconnect", identity=other.pk).status_code == 302


def test_a_user_is_deleted_with_what_the_page_counts_and_rules_stay(browser: Client, ada: User) -> None:
    ApiToken.objects.issue(ada, "nightly", ["read"])
    rule = AlertRule.objects.create(name="rule", condition="failures_in_row", threshold=1, author=ada)
    page = browser.get(f"/access/users/{ada.pk}/delete/").content.decode()
    assert "Deleted for ever with it: 1 API token." in page
    assert "Expected ada, got bob" in refusal(change(browser, ada, "delete", name="bob"))
    assert change(browser, ada, "delete", name="ada")["Location"] == "/access/"
    assert not User.objects.filter(pk=ada.pk).exists()
    assert not ApiToken.objects.exists()
    rule.refresh_from_db()
    assert rule.author is None
    ((kind, name, before, after),) = recorded()
    assert (kind, name, before["email"], after) == ("account", "ada", "ada@example.org", "deleted")


def test_a_disabled_user_comes_in_nowhere_until_enabled(browser: Client, ada: User) -> None:
    own = Client(REMOTE_ADDR="198.51.100.4")
    log_in(own, ada)
    program = Client(headers={"Authorization": f"Bearer {ApiToken.objects.issue(ada, 'x', ['read'])}"})
    assert is_logged_in(own)
    change(browser, ada, "disable")
    assert not is_logged_in(own)
    assert not UserSession.objects.filter(user=ada).exists()
    assert program.get("/api/v1/me").status_code == 401
    log_in(own, ada)
    assert not is_logged_in(own)
    change(browser, ada, "enable")
    assert program.get("/api/v1/me").status_code == 200
    log_in(own, ada)
    assert is_logged_in(own)


def names_listed(browser: Client, **query: str) -> list[str]:
    return [user.username for user, _ in browser.get("/access/", query).context["rows"]]


def test_users_are_found_by_name_address_identity_and_state(browser: Client, ada: User) -> None:
    builders.user("bob", first_name="Robert", is_active=False)
    suspended = identity_of(builders.user("eve"), "viewer", suspended="Grid Login named no group")
    assert names_listed(browser) == ["ada", "bob", "chief", "eve"]
    assert names_listed(browser, text="rob") == ["bob"]
    assert names_listed(browser, text="example.org ada") == ["ada"]
    assert names_listed(browser, text=suspended.subject) == ["eve"]
    assert names_listed(browser, text="zz") == []
    assert names_listed(browser, state="disabled") == ["bob"]
    assert names_listed(browser, state="suspended") == ["eve"]
    assert names_listed(browser, state="administrator") == ["chief"]
    page = browser.get("/access/").content.decode()
    assert "suspended: Grid Login named no group" in page


def test_a_page_lists_a_hundred_users_in_a_fixed_number_of_statements(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    User.objects.bulk_create(User(username=f"user-{number:03}") for number in range(300))
    for user in User.objects.filter(username__startswith="user-00"):
        identity_of(user, "viewer")
    with django_assert_max_num_queries(25):
        first = browser.get("/access/")
    assert len(first.context["rows"]) == 100
    assert "Page 1 of 4" in first.content.decode()
    assert len(browser.get("/access/?page=4").context["rows"]) == 1
    assert names_listed(browser, page="5") == []


def test_a_group_is_created_renamed_filled_and_deleted(browser: Client, ada: User) -> None:
    browser.post("/access/groups/new/", {"name": "physicists"})
    group = Group.objects.get(name="physicists")
    change(browser, group, "add", user="ada")
    assert recorded() == [("group", "physicists: ada", None, "member")]
    change(browser, group, "permit", **_permission(ada))
    assert User.objects.get(pk=ada.pk).has_perm("monitor.run_series")
    change(browser, group, "rename", name="chemists")
    assert recorded() == [("group", "physicists", "physicists", "chemists")]
    page = browser.get(f"/access/groups/{group.pk}/").content.decode()
    assert "chemists" in page
    assert "monitor.run_series" in page
    change(browser, group, "remove", user=ada.pk)
    assert not ada.groups.exists()
    assert change(browser, group, "delete")["Location"] == "/access/groups/"
    assert recorded() == [("group", "chemists", {"members": []}, "deleted")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("operator", "is a role"),
        ("Operator", "is a role"),
        ("Physicists", "already"),
        ("a\u200bb", "printable"),
    ],
)
def test_a_group_has_no_name_of_a_role_or_of_another_group(browser: Client, name: str, message: str) -> None:
    Group.objects.create(name="physicists")
    other = Group.objects.create(name="others")
    assert message in refusal(browser.post("/access/groups/new/", {"name": name}))
    assert message in refusal(change(browser, other, "rename", name=name))


def test_the_group_of_a_role_has_no_page(browser: Client) -> None:
    role = Group.objects.get(name="operator")
    for path in ("", "rename/", "delete/", "add/"):
        assert browser.post(f"/access/groups/{role.pk}/{path}").status_code in {404, 405}
    assert browser.get(f"/access/groups/{role.pk}/").status_code == 404
    assert Group.objects.filter(name="operator").exists()


def test_the_only_viewer_of_a_suite_is_not_deleted(browser: Client) -> None:
    """Without it, all users would see the suite."""
    group = Group.objects.create(name="physicists")
    suite = Suite.objects.create(name="hidden")
    suite.viewers.add(group)
    assert "the only viewer of hidden" in refusal(change(browser, group, "delete"))
    suite.viewers.add(Group.objects.create(name="others"))
    assert change(browser, group, "delete").status_code == 302


def test_the_page_of_a_user_shows_roles_by_each_identity_and_why_one_is_suspended(
    browser: Client, ada: User
) -> None:
    roles.grant(ada, Grant(UserRole.SCHEDULER))
    identity = identity_of(ada, "operator", suspended="no login by the provider for 14 days")
    act_as(ada, None)
    ApiToken.objects.issue(ada, "nightly", ["read"])
    page = browser.get(f"/access/users/{ada.pk}/").content.decode()
    for text in (
        "scheduler",
        identity.subject,
        "operator",
        "no login by the provider for 14 days",
        "nightly",
    ):
        assert text in page
