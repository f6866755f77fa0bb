"""The pages of accounts on each screen, light and dark, with one, 3 and 300 users."""

from __future__ import annotations

from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, Suite
from monitor.models.role import UserRole
from tests.by_night import by_night
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import as_confirmed
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import FilledDepot, Visitors, look

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
LONG = "a.name-of-an-institution-without-end@students.physics.example.org"
REASON = "Grid Login of the Example University named no group with a role for this user"


@pytest.fixture
def chief(depot: FilledDepot, visitors: Visitors) -> User:
    """The administrator of the depot, after a confirmation."""
    user, browser = User.objects.get(username="administrator"), Client()
    browser.cookies["sessionid"] = visitors.session = depot.administrator
    as_confirmed(browser, user)
    return user


def fill(number: int) -> User:
    """Create *number* users with all that a page can show of them; return the one with the most."""
    group = Group.objects.create(name="physicists of the collaboration")
    users = [
        builders.user(f"user-{each:03}", first_name="Ada", last_name=f"Lovelace the {each}th")
        for each in range(number - 1)
    ]
    full = builders.user(LONG, email=LONG, first_name="Augusta Ada", last_name="King, Countess of Lovelace")
    for role in (UserRole.VIEWER, UserRole.SCHEDULER, UserRole.OPERATOR):
        roles.grant(full, Grant(role))
    for site in ("site1", "site2", "site3", "site4"):
        roles.grant(full, Grant(UserRole.SITE_ADMIN, site))
    full.user_permissions.add(Permission.objects.get(codename="manage_signatures"))
    group.user_set.add(full, *users)
    identity_of(full, "operator", "site_admin:site1")
    identity_of(full, "viewer", suspended=REASON, suspended_at=timezone.now())
    for kind in ("totp", "recovery_codes"):
        Authenticator.objects.create(user=full, type=kind, data={})
    for each in range(3):
        ApiToken.objects.issue(full, f"nightly job {each} of the scheduler", ["read", "run"])
        session = Client()
        session.force_login(full)
        UserSession.objects.create(
            user=full,
            session_key=session.session.session_key,
            ip="2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff",
            user_agent="Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 "
            * 2,
            last_seen_at=timezone.now() - timedelta(minutes=each),
        )
    User.objects.filter(username="user-001").update(is_active=False)
    Suite.objects.get(name="main").viewers.add(group)
    return full


@pytest.mark.parametrize("number", [3, by_night(300)])
def test_the_pages_of_accounts_look_well(visitors: Visitors, chief: User, number: int) -> None:
    full = fill(number)
    group = Group.objects.get(name="physicists of the collaboration")
    paths = {
        "list": "/access/",
        "user": f"/access/users/{full.pk}/",
        "group": f"/access/groups/{group.pk}/",
        "grant": f"/access/users/{full.pk}/grant/",
    }
    wrong = [
        fault for name, path in paths.items() for fault in look(visitors, path, f"access-{number}/{name}")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_the_pages_of_changes_look_well(visitors: Visitors, chief: User) -> None:
    full = fill(3)
    paths = {
        "nobody": "/access/?text=zz",
        "groups": "/access/groups/",
        "new": "/access/users/new/",
        "own": f"/access/users/{chief.pk}/",
        "own-delete": f"/access/users/{chief.pk}/delete/",
        "no-factor": f"/access/users/{chief.pk}/remove-factor/",
        **{
            verb: f"/access/users/{full.pk}/{verb}/"
            for verb in (
                "password",
                "delete",
                "disable",
                "disconnect",
                "end-sessions",
                "permit",
                "revoke-token",
            )
        },
    }
    wrong = [fault for name, path in paths.items() for fault in look(visitors, path, f"access-change/{name}")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_a_refused_form_says_why_at_the_field(visitors: Visitors, chief: User) -> None:
    visit = visitors.come("phone")
    page = visit.open("/access/users/new/")
    page.get_by_label("User name").fill("administrator")
    page.get_by_label("Password", exact=True).fill("short")
    page.get_by_label("Password again").fill("other")
    page.get_by_role("button", name="Create user").click()
    page.get_by_text("The two passwords differ.").wait_for()
    assert page.get_by_label("User name").input_value() == "administrator"
    page.screenshot(path="var/screenshots/access-change/refused.png", full_page=True)
    assert visit.complaints == [
        "Failed to load resource: the server responded with a status of 409 (Conflict)"
    ]
