"""Connecting an identity brings nothing to what its user made before: that has what is granted here alone."""

from __future__ import annotations

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.analysis.alerts import rule_authors
from monitor.analysis.webhooks import authors as webhook_authors
from monitor.depot.access import roles
from monitor.depot.access.audit_trail import audit_trail
from monitor.depot.access.roles import Grant
from monitor.models import AlertRule, ApiToken, Identity, Webhook
from monitor.models.role import UserRole
from monitor.web.accounts import identities
from tests.monitor.depot.access.test_tokens import call
from tests.monitor.web.accounts.identities import identity_of, session_by
from tests.monitor.web.accounts.test_deleted_identities import acting, rule_and_webhook

pytestmark = pytest.mark.django_db


def connected(user: User, role: str) -> Identity:
    """Connect *user* with a further account of the provider, as a login does."""
    subject = f"{user}-connected"
    account = SocialAccount.objects.create(user=user, provider="oidc", uid=subject)
    return identities.admit(account, "https://id.example.org", subject, [role], timezone.now())


def test_a_token_of_before_gets_no_roles_by_the_first_identity_of_its_user(reader: User) -> None:
    """A local account without a role reads as a viewer: so did the holder of the token."""
    text = ApiToken.objects.issue(reader, "x", ["read"])
    assert call(text).json()["roles"] == ["viewer"]
    identity = connected(reader, "administrator")
    assert call(text).status_code == 401
    roles.grant(reader, Grant(UserRole.VIEWER))
    assert call(text).json()["roles"] == ["viewer"]
    assert ApiToken.objects.get().identity is None
    identities.disconnect(identity)
    assert call(text).json()["roles"] == ["viewer"]


def test_a_token_that_stops_by_a_connection_does_not_do_so_in_silence(reader: User, browser: Client) -> None:
    token = ApiToken.objects.with_text(ApiToken.objects.issue(reader, "x", ["read"]))
    with audit_trail() as trail:
        identity = connected(reader, "viewer")
    (change,) = (each for each in trail.changes if each["kind"] == "token")
    assert (change["name"], change["after"]) == (
        f"{reader}: {token}",
        "stopped: no role is granted here",
    )
    page = session_by(browser, reader, identity).get("/account/tokens/").content.decode()
    assert "stopped: no role is granted here" in page


def test_a_dead_token_stays_dead_when_a_further_identity_is_connected(reader: User) -> None:
    roles.grant(reader, Grant(UserRole.OPERATOR))
    identity_of(reader, "viewer")
    text = ApiToken.objects.issue(acting(None, reader), "x", ["read", "run", "manage"])
    assert "operator" in call(text).json()["roles"]
    roles.revoke(User.objects.get(pk=reader.pk), Grant(UserRole.OPERATOR))
    assert call(text).status_code == 401
    with audit_trail() as trail:
        connected(reader, "administrator")
    assert call(text).status_code == 401
    assert [each for each in trail.changes if each["kind"] == "token"] == [], "it had stopped before"


@pytest.mark.parametrize("granted", [(), (UserRole.VIEWER,)])
def test_rules_and_webhooks_of_before_act_by_what_is_granted_here_alone(
    granted: tuple[UserRole, ...], reader: User
) -> None:
    for role in granted:
        roles.grant(reader, Grant(role))
    rule_and_webhook(acting(None, reader))
    connected(reader, "administrator")
    rule_authors.judge_authors(timezone.now())
    webhook_authors.judge_authors(timezone.now())
    assert AlertRule.objects.get().suspended
    assert Webhook.objects.get().suspended
    assert AlertRule.objects.get().identity is None
