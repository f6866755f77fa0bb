"""An identity is disconnected only where another door remains: refusals are compared with what opens."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import DoorOpening, Identity
from monitor.models.door_opening import MOST_OPEN
from monitor.models.role import UserRole
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts import door_reasons, doors, identities
from monitor.web.accounts.environment import LocalLogin, RemoteUser
from monitor.web.accounts.identities import NoDoorLeft
from tests.monitor.web.accounts.identities import PROVIDER, identity_of
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
FORMER = "https://former.example.org"
OTHERS: Mapping[str, dict[str, Any] | None] = {
    "no other identity": None,
    "another one": {},
    "a suspended one": {"suspended": "no group"},
    "one of a former issuer": {"issuer": FORMER},
    "one of before": {"issuer": "", "is_verified": False},
}
NAMES = ("ada", "gr\N{LATIN SMALL LETTER A WITH DIAERESIS}ce")  # the header of a proxy has ASCII letters only
LOCAL_LOGINS = (LocalLogin(None), LocalLogin(frozenset({"chief", *NAMES})), LocalLogin(frozenset()))
PROXIED = RemoteUser("Remote-User", Proxies((), is_unix=True), "")


def has_door(user: User) -> bool:
    """Return whether a login opens the account of *user*, if need be one that ends a suspension."""
    now = timezone.now()
    return bool(doors.identities_of_logins(user, now) or door_reasons.other_ways(user, now))


@pytest.mark.parametrize("other", OTHERS)
def test_an_identity_is_disconnected_just_where_a_login_opens_the_account_then(
    other: str, settings: Settings
) -> None:
    builders.user("chief", is_superuser=True)
    users, outcomes = [User.objects.create_user(name) for name in NAMES], set()
    for user, password, is_granted, provider, local_login, proxy in itertools.product(
        users, (builders.PASSWORD, None), (True, False), (PROVIDER, None), LOCAL_LOGINS, (PROXIED, None)
    ):
        settings.GRIDCAST_IDENTITY_PROVIDER, settings.GRIDCAST_REMOTE_USER = provider, proxy
        settings.GRIDCAST_LOCAL_LOGIN = local_login
        with transaction.atomic():
            user.set_password(password)
            user.save()
            if is_granted:
                roles.grant(user, Grant(UserRole.OPERATOR))
            identity = identity_of(user, "viewer")
            if (fields := OTHERS[other]) is not None:
                identity_of(user, "viewer", **fields)
            is_refused = bool(doors.no_door_without(identity))
            SocialAccount.objects.filter(pk=identity.account_id).delete()
            case = (str(user), password, is_granted, provider, local_login, proxy)
            assert is_refused == (not has_door(user)), case
            outcomes.add(is_refused)
            transaction.set_rollback(True)
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", NAMES)
def test_a_proxy_is_a_door_just_for_a_name_that_its_header_can_have(name: str, settings: Settings) -> None:
    settings.GRIDCAST_PROXIES = Proxies((ip_network("192.0.2.0/24"),), is_unix=False)
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", settings.GRIDCAST_PROXIES, "")
    user = builders.user(name)
    proxied = Client(REMOTE_ADDR="192.0.2.7", headers={"Remote-User": name})
    is_let_in = proxied.get("/account/").status_code == 200
    assert is_let_in == name.isascii()
    assert bool(doors.no_door_without(identity_of(user, "viewer"))) == (not is_let_in)


def test_what_a_command_has_opened_for_a_while_is_no_door_that_remains(settings: Settings) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER, settings.GRIDCAST_LOCAL_LOGIN = PROVIDER, LOCAL_LOGINS[2]
    user = builders.user("ada", password=builders.PASSWORD)
    DoorOpening.objects.create(user=user, until=timezone.now() + MOST_OPEN / 2)
    with pytest.raises(NoDoorLeft, match="GRIDCAST_LOCAL_LOGIN does not admit"):
        identities.disconnect(identity_of(user, "viewer"))


def test_a_disabled_account_is_judged_as_it_would_be_when_it_is_enabled(settings: Settings) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    user = builders.user("ada", password=builders.PASSWORD, is_active=False)
    identities.disconnect(identity_of(user, "viewer"))
    assert not Identity.objects.exists()


def test_the_refusal_names_what_helps(settings: Settings) -> None:
    """The identity of the former issuer can be disconnected; then the password opens the account."""
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    user = builders.user("ada", password=builders.PASSWORD)
    current, former = identity_of(user, "viewer"), identity_of(user, "viewer", issuer=FORMER)
    with pytest.raises(NoDoorLeft, match=f"its other identities are of {FORMER}, where no login leads now"):
        identities.disconnect(current)
    identities.disconnect(former)
    identities.disconnect(current)
    assert has_door(user)
