"""What was made under an identity ends with it: nothing goes on with other roles of its user, or silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.analysis.alerts import rule_authors
from monitor.analysis.webhooks import authors as webhook_authors
from monitor.depot.access import roles
from monitor.depot.access.audit_trail import audit_trail
from monitor.depot.access.roles import Grant
from monitor.models import AlertRule, ApiToken, Hold, Identity, Site, Webhook
from monitor.models.author import by
from monitor.models.hold import IDENTITY_IS_GONE, HoldKind, HoldMode, Scope
from monitor.models.role import UserRole, act_as
from monitor.runs.ledger import holds
from monitor.web.accounts import identities, users
from tests.monitor.depot.access.test_tokens import call
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
SITE = Scope(HoldKind.SITE, "ncsa")


@pytest.fixture
def identity(reader: User) -> Identity:
    """An identity that brings the role operator to a user that has it by a grant as well."""
    roles.grant(reader, Grant(UserRole.OPERATOR))
    Site.objects.create(name="ncsa")
    return identity_of(reader, "operator")


def acting(identity: Identity | None, user: User) -> User:
    user = User.objects.get(pk=user.pk)
    act_as(user, identity.pk if identity else None)
    return user


def rule_and_webhook(author: User) -> None:
    watches: dict[str, Any] = {"condition": "failures_in_row", "threshold": 1, "everything": True}
    AlertRule.objects.create(name="rule", **watches, **by(author))
    sends: dict[str, Any] = {"url": "https://x.example.org/", "events": ["run.ended"]}
    Webhook.objects.create(name="hook", created_at=timezone.now(), **sends, **by(author))


def hold_by(identity: Identity, now: datetime, until: datetime | None = None) -> Hold:
    who = str(identity.user)
    return holds.hold(
        SITE, HoldMode.PAUSE, who=who, why="disk swap", now=now, until=until, identity=identity.pk
    )


# Ways in which an identity goes.


def _disconnected(identity: Identity) -> None:
    identities.disconnect(Identity.objects.get(pk=identity.pk))


def _account_deleted(identity: Identity) -> None:
    identity.account.delete()


def _identities_deleted(identity: Identity) -> None:
    Identity.objects.filter(pk=identity.pk).delete()


def _user_deleted(identity: Identity) -> None:
    users.delete(User.objects.get(pk=identity.user_id))


WAYS: Mapping[str, Callable[[Identity], None]] = {
    "disconnected": _disconnected,
    "account of the provider deleted": _account_deleted,
    "deleted by a query": _identities_deleted,
    "user deleted": _user_deleted,
}


def _nothing(identity: Identity) -> None:
    pass


def _suspended(identity: Identity) -> None:
    identities.suspend(identity, "dismissed", timezone.now())


def _unseen(identity: Identity) -> None:
    Identity.objects.filter(pk=identity.pk).update(valid_until=timezone.now() - timedelta(minutes=1))


SUSPENSIONS: Mapping[str, Callable[[Identity], None]] = {
    "in force": _nothing,
    "suspended": _suspended,
    "without a login for long": _unseen,
}


@pytest.mark.parametrize("state", SUSPENSIONS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_made_under_an_identity_goes_on_by_other_roles_of_its_user(
    way: str, state: str, identity: Identity
) -> None:
    now, ada = timezone.now() - timedelta(hours=1), acting(identity, identity.user)
    text = ApiToken.objects.issue(ada, "x", ["read"])
    defined: dict[str, Any] = {"url": "https://x.example.org/", "events": ["run.ended"], "created_at": now}
    AlertRule.objects.create(
        name="rule", condition="failures_in_row", threshold=1, everything=True, **by(ada)
    )
    Webhook.objects.create(name="hook", **defined, **by(ada))
    hold_by(identity, now)
    SUSPENSIONS[state](identity)
    WAYS[way](identity)
    rule_authors.judge_authors(timezone.now())
    webhook_authors.judge_authors(timezone.now())
    gone = f"its author, {ada}, or the identity by which it was saved, was deleted"
    assert call(text).status_code == 401
    assert (AlertRule.objects.get().suspended, Webhook.objects.get().suspended) == (gone, gone)
    assert Hold.objects.at(timezone.now()).exists() == (state == "in force")


@pytest.mark.parametrize("way", WAYS)
def test_a_hold_of_a_suspended_identity_ends_with_it_and_says_so(way: str, identity: Identity) -> None:
    """It did not cover the time since the suspension, and does not afterwards."""
    now = timezone.now()
    hold = hold_by(identity, now - timedelta(hours=2))
    identities.suspend(identity, "dismissed", now - timedelta(hours=1))
    with audit_trail() as trail:
        WAYS[way](identity)
    hold.refresh_from_db()
    assert (hold.ended_at, hold.ended_by) == (now - timedelta(hours=1), IDENTITY_IS_GONE)
    covered = [
        Hold.objects.covering(now - timedelta(minutes=minutes)).exists() for minutes in (130, 110, 70, 50, 10)
    ]
    assert covered == [False, True, True, False, False]
    (change,) = (each for each in trail.changes if each["kind"] == "hold")
    assert (change["before"], change["after"]) == (
        "not in force: dismissed",
        f"ended: {IDENTITY_IS_GONE}",
    )


def test_the_page_of_a_site_says_why_the_hold_of_a_dismissed_user_ended(identity: Identity) -> None:
    builders.circle("ring", [builders.site("sdsc")])
    now = timezone.now()
    scope = Scope(HoldKind.SITE, "sdsc")
    holds.hold(scope, HoldMode.PAUSE, who=str(identity.user), why="swap", now=now, identity=identity.pk)
    identities.suspend(identity, "dismissed", now)
    identities.disconnect(identity)
    chief = Client()
    chief.force_login(builders.user(f"{identity.user}-chief", is_superuser=True))
    assert IDENTITY_IS_GONE in chief.get("/holds/site/sdsc/").content.decode()


def test_a_hold_whose_time_was_over_before_the_suspension_ends_as_any_other(identity: Identity) -> None:
    now = timezone.now()
    until = now - timedelta(minutes=90)
    hold = hold_by(identity, now - timedelta(hours=2), until)
    identities.suspend(identity, "dismissed", now - timedelta(hours=1))
    identities.disconnect(identity)
    holds.end_overdue(now)
    hold.refresh_from_db()
    assert (hold.ended_at, hold.ended_by) == (until, holds.EXPIRED)


def test_a_rule_whose_identity_is_gone_is_in_force_again_when_its_user_saves_it(identity: Identity) -> None:
    ada = acting(identity, identity.user)
    AlertRule.objects.create(
        name="rule", condition="failures_in_row", threshold=1, everything=True, **by(ada)
    )
    identities.disconnect(identity)
    rule_authors.judge_authors(timezone.now())
    AlertRule.objects.update(**by(acting(None, ada)))
    rule_authors.judge_authors(timezone.now())
    assert AlertRule.objects.get().suspended == ""
