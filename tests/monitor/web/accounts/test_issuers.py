"""The account that a subject of an issuer belongs to, also after an upgrade or a move of the issuer."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from monitor.web.accounts.environment import IdentityProvider
from monitor.web.accounts.identities import admit, uid_of
from tests.monitor.web.accounts.identities import identity_of

pytestmark = pytest.mark.django_db
HERE, ELSEWHERE = "https://id.example.org/realms/grid", "https://other.example.org"
MOVED = IdentityProvider(ELSEWHERE, "x", "x", "x", ("openid",), "groups", ())


def test_a_subject_of_another_issuer_is_another_user(reader: User) -> None:
    identity = identity_of(reader, "viewer", issuer=HERE, is_verified=True)
    assert uid_of(HERE, identity.subject) == identity.account.uid
    assert uid_of(ELSEWHERE, identity.subject) != identity.account.uid
    assert uid_of(f"{HERE}/", identity.subject) == identity.account.uid, "it is the configured one either way"


def test_an_identity_of_before_is_bound_by_a_verified_login_of_the_issuer_of_then(reader: User) -> None:
    identity = identity_of(reader, "viewer", issuer=HERE, is_verified=False)
    assert uid_of(ELSEWHERE, identity.subject) != identity.account.uid
    assert uid_of(f"{HERE}/", identity.subject) == identity.account.uid, "a slash was cut off then"
    admit(identity.account, f"{HERE}/", identity.subject, ["viewer"], timezone.now())
    identity.refresh_from_db()
    assert (identity.issuer, identity.is_verified) == (f"{HERE}/", True)
    assert uid_of(f"{HERE}/", identity.subject) == identity.account.uid


def test_of_two_identities_that_differ_by_the_slash_the_exact_one_logs_in(reader: User) -> None:
    exact = identity_of(reader, "viewer", issuer=f"{HERE}/", subject="ada", is_verified=True)
    identity_of(reader, "viewer", issuer=HERE, subject="ada", is_verified=True)
    assert uid_of(f"{HERE}/", "ada") == exact.account.uid


def test_an_identity_of_before_without_an_issuer_belongs_to_the_first_one(reader: User) -> None:
    identity = identity_of(reader, "viewer", issuer="", is_verified=False)
    other = identity_of(reader, "viewer", issuer=HERE, is_verified=False)
    assert uid_of(HERE, identity.subject) == identity.account.uid
    admit(other.account, HERE, other.subject, ["viewer"], timezone.now())
    assert uid_of(HERE, identity.subject) == identity.account.uid
    assert uid_of(ELSEWHERE, identity.subject) != identity.account.uid


def test_a_command_binds_the_identities_of_an_issuer_to_the_configured_one(
    reader: User, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = identity_of(reader, "viewer", issuer=HERE, is_verified=True)
    settings.GRIDCAST_IDENTITY_PROVIDER = None
    with pytest.raises(CommandError, match="GRIDCAST_OIDC_URL is not set"):
        call_command("account", "bind-issuer", HERE)
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        ELSEWHERE, "x", "x", "x", ("openid",), "groups", ()
    )
    with pytest.raises(
        CommandError, match=r"no identity of the issuer 'https://nowhere.example.org'; .* are: 'https://id"
    ):
        call_command("account", "bind-issuer", "https://nowhere.example.org")
    with pytest.raises(CommandError, match="is the configured issuer: its identities belong to it already"):
        call_command("account", "bind-issuer", ELSEWHERE)
    call_command("account", "bind-issuer", HERE)
    assert "1 identity of https://id.example.org/realms/grid" in capsys.readouterr().out
    identity.refresh_from_db()
    assert (identity.issuer, identity.is_verified) == (ELSEWHERE, False)
    assert uid_of(ELSEWHERE, identity.subject) == identity.account.uid


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_command_does_not_merge_two_identities(slash: str, reader: User, settings: Settings) -> None:
    """Else one subject of the provider would be two users: one with the slash at the end, one without."""
    identity_of(reader, "viewer", issuer=HERE, subject="ada")
    identity_of(reader, "viewer", issuer=f"{ELSEWHERE}{slash}", subject="ada")
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        ELSEWHERE, "x", "x", "x", ("openid",), "groups", ()
    )
    with pytest.raises(CommandError, match="'ada' is known there as well"):
        call_command("account", "bind-issuer", HERE)


def test_a_command_binds_the_identities_of_the_other_slash_to_the_configured_one(
    reader: User, settings: Settings
) -> None:
    identity = identity_of(reader, "viewer", issuer=f"{ELSEWHERE}/", subject="ada")
    settings.GRIDCAST_IDENTITY_PROVIDER = MOVED
    call_command("account", "bind-issuer", f"{ELSEWHERE}/")
    identity.refresh_from_db()
    assert identity.issuer == ELSEWHERE
