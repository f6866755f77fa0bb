"""Logins and refusals at the provider are events of the right user, with all that they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.audit_trail import audit_trail
from monitor.depot.access.roles import Grant
from monitor.models import AuditEvent
from monitor.models.role import UserRole
from monitor.web.accounts import identities, sessions, users
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import code_of, is_logged_in, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.accounts.provider.test_logout import send, token
from tests.monitor.web.accounts.provider.test_waiting_logins import give_app
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
Browsers = Callable[[], Client]
LOGGED_IN, LOGGED_OUT = "logged in", "logged out"


@pytest.fixture
def local(browser_elsewhere: Browsers, op: OpenIdProvider, reader: User) -> Client:
    """A session by the password, of a user whose identity has been suspended before."""
    op.claims["preferred_username"] = str(reader)
    builders.user(f"{reader}-chief", is_superuser=True)
    roles.grant(reader, Grant(UserRole.OPERATOR))
    identity = identity_of(reader, "viewer", issuer=op.issuer, subject=op.claims["sub"], is_verified=True)
    identities.suspend(identity, "logged out at Grid Login", timezone.now())
    browser = browser_elsewhere()
    log_in(browser, reader)
    assert is_logged_in(browser)
    return browser


def ended(name: str, number: int = 1) -> dict[str, Any]:
    return {"kind": "sessions", "name": name, "before": number, "after": "ended"}


def session(name: str, after: str) -> dict[str, Any]:
    return {"kind": "session", "name": name, "before": None, "after": after}


def test_a_second_logout_that_ends_sessions_is_recorded(
    local: Client, op: OpenIdProvider, reader: User
) -> None:
    assert send(token(op, jti="second")).status_code == 200
    assert not is_logged_in(local)
    assert AuditEvent.objects.latest("pk").changes == [ended(str(reader))]


def test_a_second_refusal_that_ends_sessions_is_recorded(
    local: Client, op: OpenIdProvider, reader: User, browser_elsewhere: Browsers
) -> None:
    op.claims["groups"] = []
    assert op.log_in(browser_elsewhere()).status_code == 403
    assert not is_logged_in(local)
    done = AuditEvent.objects.filter(outcome="done").latest("pk")
    assert (done.user, done.changes) == (str(reader), [ended(str(reader))])


@pytest.mark.parametrize(
    "end",
    [
        sessions.end_all,
        users.disable,
        users.delete,
        users.end_sessions,
        lambda user: sessions.end(user, sessions.of_user(user)[0].pk),
        lambda user: users.set_password(user, "staple battery horse"),
        lambda user: identities.suspend(user.identities.get(), "not in the group", timezone.now()),
        lambda user: identities.disconnect(user.identities.get()),
        give_app,
    ],
)
def test_whatever_ends_sessions_notes_their_number(
    end: Callable[[User], object], local: Client, reader: User
) -> None:
    with audit_trail() as trail:
        end(User.objects.get(pk=reader.pk))
    assert ended(str(reader)) in trail.changes
    assert not is_logged_in(local)


def test_a_login_ends_the_session_of_a_user_that_is_not_admitted_any_more(
    local: Client, reader: User
) -> None:
    roles.revoke(reader, Grant(UserRole.OPERATOR))
    assert not is_logged_in(local)
    other = builders.user(f"{reader}-other", password=builders.PASSWORD)
    log_in(local, other)
    event = AuditEvent.objects.latest("pk")
    assert event.user == str(other)
    assert event.changes == [ended(str(reader)), session(str(other), LOGGED_IN)]


def test_a_login_in_the_browser_of_another_user_is_an_event_of_the_user_that_logs_in(
    browser: Client, op: OpenIdProvider
) -> None:
    first, second = op.claims["preferred_username"], f"{op.claims['preferred_username']}-b"
    op.log_in(browser)
    op.claims |= {"sub": f"{op.claims['sub']}-b", "preferred_username": second}
    op.log_in(browser)
    event = AuditEvent.objects.latest("pk")
    assert event.user == second
    assert session(first, LOGGED_OUT) in event.changes
    assert session(second, LOGGED_IN) in event.changes


def test_a_login_that_waits_in_the_browser_of_another_user_logs_that_one_out(
    browser: Client, op: OpenIdProvider, browser_elsewhere: Browsers
) -> None:
    first, second = op.claims["preferred_username"], f"{op.claims['preferred_username']}-b"
    claims = {"sub": f"{op.claims['sub']}-b", "preferred_username": second}
    op.log_in(browser)
    op.claims |= claims
    op.log_in(browser_elsewhere())
    secret = give_app(User.objects.get(username=second))
    op.log_in(browser)
    event = AuditEvent.objects.latest("pk")
    assert (event.user, event.changes) == (first, [session(first, LOGGED_OUT)])
    browser.post("/login/second-factor/", {"code": code_of(secret)})
    event = AuditEvent.objects.latest("pk")
    assert (event.user, event.changes[-1:]) == (second, [session(second, LOGGED_IN)])


@pytest.mark.parametrize("refusal", ["name_taken", "no_role"])
def test_a_refused_login_does_nothing_under_the_name_that_was_refused(
    browser: Client, op: OpenIdProvider, reader: User, refusal: str
) -> None:
    first = op.claims["preferred_username"]
    op.log_in(browser)
    op.claims |= {"sub": f"{op.claims['sub']}-b", "preferred_username": str(reader)}
    if refusal == "no_role":
        op.claims["groups"] = []
    before = AuditEvent.objects.latest("pk").pk
    assert op.log_in(browser).status_code == 403
    events = AuditEvent.objects.filter(pk__gt=before)
    assert events.get(outcome="denied").user == str(reader)
    for event in events.filter(outcome="done"):
        assert (event.user, event.changes) == (first, [session(first, LOGGED_OUT)])
    assert is_logged_in(browser) == (not events.filter(outcome="done").exists())
