"""An active administrator remains, whatever makes the change; only a provider may suspend the last one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant, LastAdministrator
from monitor.models.role import UserRole
from monitor.web.accounts import identities
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.pages import builders

ADMINISTRATOR = Grant(UserRole.ADMINISTRATOR)


def _granted() -> User:
    user = builders.user("chief")
    roles.grant(user, ADMINISTRATOR)
    return user


def _by_identity() -> User:
    user = builders.user("chief")
    identity_of(user, "administrator")
    return user


def _disabled(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _deprived(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_superuser=False)
    user.identities.update(roles=["viewer"])


def _deleted(user: User) -> None:
    User.objects.get(pk=user.pk).delete()


def _disconnected(user: User) -> None:
    for identity in user.identities.all():
        identity.account.delete()
    User.objects.filter(pk=user.pk).update(is_superuser=False)


CHANGES: Mapping[str, Callable[[User], None]] = {
    "disabled": _disabled,
    "deprived": _deprived,
    "deleted": _deleted,
    "disconnected": _disconnected,
}


def commit() -> None:
    """Check now what is checked at a commit."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


@transaction.atomic
def made(change: str, user: User) -> None:
    CHANGES[change](user)
    commit()


@pytest.mark.django_db
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("administrator", [_granted, _by_identity])
def test_the_last_administrator_remains(administrator: Callable[[], User], change: str) -> None:
    user = administrator()
    commit()
    with pytest.raises(IntegrityError, match="no active administrator would remain"):
        made(change, user)
    builders.user("gone", is_superuser=True, is_active=False)
    with pytest.raises(IntegrityError):
        made(change, user)
    identity_of(builders.user("deputy"), "administrator")
    made(change, user)


@pytest.mark.django_db
@pytest.mark.parametrize("change", CHANGES)
def test_a_depot_without_an_administrator_may_be_changed(change: str) -> None:
    user = builders.user("ada")
    identity_of(user, "operator")
    commit()
    made(change, user)


@pytest.mark.django_db
def test_the_provider_suspends_even_the_last_administrator() -> None:
    user = _by_identity()
    identities.suspend(user.identities.get(), "no group", timezone.now())
    commit()
    assert roles.usual_identity(user) is None


@pytest.mark.django_db
def test_the_polite_refusal_names_the_user() -> None:
    user = _granted()
    with pytest.raises(LastAdministrator, match="chief is the last active administrator"):
        roles.revoke(user, ADMINISTRATOR)
    identity_of(builders.user("deputy"), "administrator")
    assert roles.revoke(user, ADMINISTRATOR)


@pytest.mark.django_db(transaction=True)
def test_two_transactions_that_each_take_one_of_two_administrators_leave_one() -> None:
    users = [builders.user(name, is_superuser=True) for name in ("ada", "bob")]
    both_have_changed, outcomes = threading.Barrier(2), []

    def take(user: User) -> None:
        try:
            with transaction.atomic():
                _disabled(user)
                both_have_changed.wait(60)
            outcomes.append("committed")
        except IntegrityError:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=[user]) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["committed", "refused"]
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1
