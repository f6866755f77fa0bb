"""What changes the identities of a user at once: each change sees what the other one has committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.mail import EmailMessage
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from monitor.analysis.webhooks.define import WebhookDefinition, define_webhook
from monitor.depot.access import roles, tokens
from monitor.depot.access.roles import Grant
from monitor.depot.access.token_callers import TokenError
from monitor.depot.access.tokens import TokenRequest
from monitor.models import AlertRule, ApiToken, Hold, Identity, Site, Webhook
from monitor.models.author import by
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.role import UserRole, act_as
from monitor.runs.ledger import holds
from monitor.runs.ledger.holds import HoldError
from monitor.web.accounts import identities, users
from monitor.web.accounts.identities import NoDoorLeft
from tests.databases import blocks_another_session
from tests.monitor.web.accounts.identities import PROVIDER, identity_of
from tests.monitor.web.pages import builders
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
Act = Callable[[], Any]


def while_it_waits(first: Act, second: Act) -> Any:
    """Commit *first* when *second*, in another session, waits for it; return what *second* returns."""
    has_begun = threading.Event()

    def act() -> Any:
        try:
            assert has_begun.wait(60)
            return second()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        acting = thread.submit(act)
        with transaction.atomic():
            first()
            has_begun.set()
            assert eventually(blocks_another_session)
        return acting.result()


def log_in_there(identity: Identity) -> None:
    """Let the provider name *identity*, as a login there does."""
    identities.admit(identity.account, identity.issuer, identity.subject, identity.roles, timezone.now())


@pytest.fixture
def identity(reader: User, settings: Settings) -> Identity:
    """An identity of a user that has a role granted here as well."""
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    roles.grant(reader, Grant(UserRole.VIEWER))
    Site.objects.create(name="ncsa")
    return identity_of(reader, "operator")


# The housekeeping and a login.


def test_the_housekeeping_suspends_no_identity_whose_user_has_just_logged_in(identity: Identity) -> None:
    """All identities of a depot that was upgraded are overdue at the same minute."""
    now = timezone.now()
    Identity.objects.update(verified_at=now - timedelta(days=15), valid_until=now - timedelta(days=1))
    assert while_it_waits(lambda: log_in_there(identity), lambda: identities.suspend_overdue(now)) == 0
    assert Identity.objects.in_force(now).exists()


def test_the_housekeeping_warns_no_user_that_has_just_logged_in(
    identity: Identity, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.EMAIL_HOST = "mail.example.org"  # pytest-django's mailbox takes its place
    User.objects.filter(pk=identity.user_id).update(email="ada@example.org")
    now = timezone.now()
    Identity.objects.update(verified_at=now - timedelta(days=12), valid_until=now + timedelta(days=2))
    assert while_it_waits(lambda: log_in_there(identity), lambda: identities.warn_ahead(now)) == 0
    assert mailoutbox == []
    assert Identity.objects.get().warned_at is None, "else there would be no warning before the next end"


def test_what_is_disconnected_meanwhile_is_neither_suspended_nor_disconnected_again(
    identity: Identity,
) -> None:
    read_before = [Identity.objects.get() for _ in range(2)]
    identities.disconnect(identity)
    identities.suspend(read_before[0], "no group", timezone.now())
    identities.disconnect(read_before[1])
    assert not Identity.objects.exists()


def test_of_two_identities_that_are_disconnected_at_once_one_remains(settings: Settings) -> None:
    """The account has no password: without an identity, nothing opens it."""
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    user = builders.user("ada")
    first, second = (identity_of(user, "viewer") for _ in range(2))
    with pytest.raises(NoDoorLeft):
        while_it_waits(lambda: identities.disconnect(first), lambda: identities.disconnect(second))
    assert Identity.objects.get() == second


# What is saved under an identity while that goes.


def _token(user: User) -> None:
    tokens.issue(TokenRequest(user, "x", ["read"]), timezone.now(), issuer=user)


@transaction.atomic
def _rule(user: User) -> None:
    watches: dict[str, Any] = {"condition": "failures_in_row", "threshold": 1, "everything": True}
    AlertRule.objects.create(name="rule", **by(user), **watches)


def _webhook(user: User) -> None:
    definition = WebhookDefinition("hook", url="https://x.example.org/", events=["run.ended"])
    define_webhook(definition, author=user, now=timezone.now())


def _hold(user: User) -> None:
    identity = Identity.objects.get().pk
    site = Scope(HoldKind.SITE, "ncsa")
    holds.hold(site, HoldMode.PAUSE, who=str(user), why="disk swap", now=timezone.now(), identity=identity)


SAVES: Mapping[type[Any], Callable[[User], None]] = {
    ApiToken: _token,
    AlertRule: _rule,
    Webhook: _webhook,
    Hold: _hold,
}
REFUSALS = (TokenError, PermissionDenied, HoldError)


def acting(identity: Identity) -> User:
    user = User.objects.get(pk=identity.user_id)
    act_as(user, identity.pk)
    assert user.is_active
    return user


def test_each_kind_that_keeps_an_identity_is_saved_here() -> None:
    """A new kind has to call ``Identity.objects.keep`` before it is saved."""
    fields = Identity._meta.get_fields(include_hidden=True)
    assert SAVES.keys() == {field.related_model for field in fields if field.one_to_many}


@pytest.mark.parametrize("kind", [kind for kind in SAVES if kind is not Hold])  # a hold stays, as a statement
def test_what_is_saved_while_its_identity_goes_goes_on_with_no_other_roles(
    kind: type[Any], identity: Identity
) -> None:
    user = acting(identity)
    while_it_waits(lambda: SAVES[kind](user), lambda: identities.disconnect(identity))
    (row,) = kind.objects.all()
    assert row.revoked_at is not None if kind is ApiToken else row.author is None


@pytest.mark.parametrize("kind", SAVES)
def test_nothing_is_saved_under_an_identity_that_has_just_gone(kind: type[Any], identity: Identity) -> None:
    user = acting(identity)
    with pytest.raises(REFUSALS, match="identity by which"):
        while_it_waits(lambda: identities.disconnect(identity), lambda: SAVES[kind](user))
    assert not kind.objects.exists()


def test_no_token_is_rotated_whose_identity_has_just_gone(identity: Identity) -> None:
    user = acting(identity)
    _token(user)
    token = ApiToken.objects.get()
    with pytest.raises(TokenError):
        while_it_waits(
            lambda: identities.disconnect(identity),
            lambda: tokens.rotate(token, timezone.now(), caller=user),
        )
    assert not ApiToken.objects.usable(timezone.now()).exists()


# Locks are acquired in one order: otherwise two of these acts at once would wait for each other.


def _rotate(user: User) -> None:
    tokens.rotate(ApiToken.objects.get(), timezone.now(), caller=user)


ACTS: Mapping[str, Callable[[User], object]] = {
    "disconnect": lambda user: identities.disconnect(user.identities.get()),
    "suspend": lambda user: identities.suspend(user.identities.get(), "no group", timezone.now()),
    "admit": lambda user: log_in_there(user.identities.get()),
    "disable": users.disable,
    "delete": users.delete,
    "set a password": lambda user: users.set_password(user, builders.PASSWORD),
    "rotate a token": _rotate,
    **{f"save {kind._meta.verbose_name}": save for kind, save in SAVES.items()},
}


@pytest.mark.parametrize("act", ACTS)
def test_an_act_locks_its_user_before_anything_else(act: str, identity: Identity) -> None:
    builders.user(f"{identity.user}-chief", is_superuser=True)
    user = acting(identity)
    _token(user)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        ACTS[act](user)
    statements = [each["sql"].strip() for each in captured.captured_queries]
    locks = [
        statement
        for statement in statements
        if statement.startswith(("INSERT", "UPDATE", "DELETE")) or " FOR " in statement
    ]
    assert '"auth_user"' in locks[0], locks[0]
