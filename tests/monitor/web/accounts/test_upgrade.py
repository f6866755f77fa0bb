"""A depot of before identities is upgraded: every account comes in by the doors that it should have."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from psycopg import sql
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.models import Identity, Site
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.token import digest
from monitor.web.accounts.environment import IdentityProvider
from tests.databases import copy_database, in_postgres, using_settings
from tests.monitor.web.accounts.logins import log_in
from tests.monitor.web.pages.builders import PASSWORD

BEFORE, ISSUER = "0006_equal_lengths", "https://id.example.org/realms/grid"
PROVIDER_LOGIN, PAGE = "GET /login/sso/callback/", "POST /access/"


@contextlib.contextmanager
def depot_of_before() -> Iterator[None]:
    """Have Django use a copy of the test database without identities."""
    original = connection.settings_dict["NAME"]
    name = f"{original}_before"
    copy_database(original, name)
    try:
        with using_settings({"NAME": name}):
            call_command("migrate", "monitor", BEFORE, verbosity=0)
            yield
    finally:
        in_postgres("DROP DATABASE {} WITH (FORCE)", sql.Identifier(name))


def account(name: str, *grants: str, password: str | None = PASSWORD, by: str = "") -> User:
    """Make an account with an identity, to which *by*, the action of an event, granted *grants*.

    Without *by*, no event says so: they were granted in the admin pages.
    """
    user = User.objects.create_user(name, password=password)
    SocialAccount.objects.create(user=user, provider="oidc", uid=f"subject of {name}")
    for grant in grants:
        roles.grant(user, roles.parse_grant(grant))
    if by:
        changed(user, "granted", by, *grants)
    return user


def changed(user: User, after: str, action: str, *grants: str) -> None:
    changes = [
        {"kind": "role", "name": f"{user}: {grant}", "before": None, "after": after} for grant in grants
    ]
    times = {"at": timezone.now(), "last_at": timezone.now()}
    kind = {"outcome": AuditOutcome.DONE, "channel": AuditChannel.PAGE}
    from monitor.models import AuditEvent

    AuditEvent.objects.create(user=user.username, action=action, changes=changes, **kind, **times)


def reads(client: Client, path: str = "/runs/") -> bool:
    return bool(client.get(path).status_code == 200)


def by_password(name: str, path: str = "/runs/") -> bool:
    browser = Client(REMOTE_ADDR="198.51.100.7")
    log_in(browser, name)
    return reads(browser, path)


@pytest.fixture
def upgraded(transactional_db: None, settings: Settings) -> Iterator[dict[str, str]]:
    """The texts of tokens of before, by user."""
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        ISSUER, "gridcast", "secret", "Grid Login", ("openid",), "groups", (("operator", "ops"),)
    )
    with depot_of_before():
        Site.objects.create(name="ncsa")
        account("chief", "administrator", by=PROVIDER_LOGIN)
        deputy = account("deputy", "administrator", by=PROVIDER_LOGIN)
        passkey = Authenticator(user=deputy, type=Authenticator.Type.WEBAUTHN, data={})
        Authenticator.objects.bulk_create([passkey])  # no receiver of today writes into the tables of then
        account("without-password", "administrator", password=None, by=PROVIDER_LOGIN)
        account("by-provider", "operator", "site_admin:ncsa", by=PROVIDER_LOGIN)
        account("granted-here", "operator", by=PAGE)
        account("unclear", "operator")
        account("never-refused")
        refused = account("refused")
        changed(refused, "revoked", PROVIDER_LOGIN, "operator")
        tokens = {
            name: _token_of_before(User.objects.get(username=name))
            for name in ("chief", "by-provider", "granted-here", "unclear", "refused")
        }
        call_command("migrate", verbosity=0)
        yield tokens


def _token_of_before(user: User) -> str:
    """Store a token with the columns that the table had."""
    text = f"gcast_{user.username:x<43}"
    row = (user.pk, "program", text[:11], digest(text), '["read"]')
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO monitor_apitoken (user_id, name, prefix, sha256, scopes, created_at, last_used_from)"
            " VALUES (%s, %s, %s, %s, %s, now(), '')",
            row,
        )
    return text


def _digest(text: str) -> str:
    from monitor.models.token import digest

    return digest(text)


def test_after_an_upgrade_each_account_comes_in_by_the_doors_that_it_should_have(
    upgraded: dict[str, str],
) -> None:
    """The provider is dead: its address does not answer."""
    identities = {identity.user.username: identity for identity in Identity.objects.select_related("user")}
    assert {name: (identity.roles, identity.kept_here) for name, identity in identities.items()} == {
        "chief": ([], ["administrator"]),
        "deputy": ([], ["administrator"]),
        "without-password": (["administrator"], []),
        "by-provider": (["operator", "site_admin:ncsa"], []),
        "granted-here": ([], []),
        "unclear": ([], ["operator"]),
        "never-refused": ([], ["viewer"]),
        "refused": ([], []),
    }
    assert {identity.issuer for identity in identities.values()} == {ISSUER}
    assert not any(identity.is_verified for identity in identities.values())
    assert identities["refused"].suspended == "the provider named no mapped group at the last login"

    comes_in = {name: by_password(name) for name in identities}
    assert comes_in == {
        **dict.fromkeys(identities, True),
        "without-password": False,
        "by-provider": False,
        "refused": False,
        "deputy": False,
    }
    assert by_password("chief", "/access/")
    second = log_in(Client(REMOTE_ADDR="198.51.100.7"), "deputy")
    assert second["Location"] == "/login/second-factor/", "the passkey of before is asked for"
    answers = {
        name: Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me")
        for name, text in upgraded.items()
    }
    assert {name: answer.status_code for name, answer in answers.items()} == {
        **dict.fromkeys(upgraded, 200),
        "refused": 401,
    }
    assert answers["by-provider"].json()["grants"] == ["operator", "site_admin:ncsa"]

    assert (
        checked() == "chief: administrator, deputy: administrator, never-refused: viewer, unclear: operator"
    )
    for name in ("deputy", "unclear"):
        user = User.objects.get(username=name)
        for grant in roles.grants_of(user):
            roles.revoke(user, grant)
    assert checked() == "chief: administrator, never-refused: viewer"


def checked() -> str:
    """Return the roles that ``manage.py check`` lists."""
    said = StringIO()
    call_command("check", stderr=said)
    [roles_listed] = re.findall(r"though the provider may have named them: (.*)\.", said.getvalue())
    return str(roles_listed)
