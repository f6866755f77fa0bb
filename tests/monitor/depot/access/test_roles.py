"""Roles: granted at one place, idempotently, and followed by the flags of Django."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant, InvalidGrant, LastAdministrator
from monitor.models import Site
from monitor.models.role import UserRole, reads_measurements, roles_of

pytestmark = pytest.mark.django_db


def new_user(name: str = "ada", **fields: bool) -> User:
    return User.objects.create_user(name, None, None, **fields)


def flags(user: User) -> tuple[bool, bool]:
    stored = User.objects.get(pk=user.pk)
    assert (user.is_staff, user.is_superuser) == (stored.is_staff, stored.is_superuser)
    return stored.is_staff, stored.is_superuser


def test_roles_are_created_with_their_permissions_and_only_those() -> None:
    Group.objects.filter(name="viewer").delete()
    group, _ = Group.objects.get_or_create(name="operator")
    group.permissions.set([Permission.objects.get(codename="delete_apitoken")])
    roles.ensure_roles()
    roles.ensure_roles()
    assert set(UserRole.values) <= set(Group.objects.values_list("name", flat=True))
    names = set(group.permissions.values_list("codename", flat=True))
    assert {"run_series", "manage_reporters", "change_series", "view_run", "add_rawreport"} <= names
    assert not {name for name in names if "token" in name or "user" in name or "group" in name}


def test_a_user_without_a_role_reads_as_a_viewer_and_an_inactive_user_has_none() -> None:
    assert roles_of(new_user()) == {UserRole.VIEWER}
    assert roles_of(new_user("gone", is_active=False)) == frozenset()
    assert roles.grants_of(new_user("bob")) == []


def test_permissions_of_the_user_and_of_its_groups_count_and_those_of_others_do_not() -> None:
    ada, other = new_user(), new_user("bob")
    ada.user_permissions.add(Permission.objects.get(codename="view_auditevent"))
    other.user_permissions.add(Permission.objects.get(codename="change_site"))
    group = Group.objects.create(name="operators of the night")  # no role
    group.permissions.add(Permission.objects.get(codename="run_series"))
    ada.groups.add(group)
    assert ada.get_all_permissions() == {"monitor.view_auditevent", "monitor.run_series"}
    assert roles_of(ada) == {UserRole.VIEWER}
    assert not ada.has_perm("monitor.change_site")


def test_a_user_that_is_granted_a_role_has_its_permissions_at_once_and_loses_them_with_it() -> None:
    ada = new_user()
    assert not ada.has_perm("monitor.run_series")
    roles.grant(ada, Grant(UserRole.OPERATOR))
    assert ada.has_perm("monitor.run_series")
    roles.revoke(ada, Grant(UserRole.OPERATOR))
    assert not ada.has_perm("monitor.run_series")


def test_an_inactive_user_has_no_permission() -> None:
    gone = new_user("gone", is_active=False)
    gone.user_permissions.add(Permission.objects.get(codename="run_series"))
    assert not gone.get_all_permissions()
    assert not gone.has_perm("monitor.run_series")


def test_only_a_scheduler_that_is_nothing_else_is_kept_from_measurements() -> None:
    user = new_user()
    roles.grant(user, Grant(UserRole.SCHEDULER))
    assert not reads_measurements(user)
    roles.grant(user, Grant(UserRole.VIEWER))
    assert reads_measurements(user)


def test_a_role_is_granted_and_revoked_once() -> None:
    user = new_user()
    Site.objects.create(name="ncsa")
    at_ncsa = Grant(UserRole.SITE_ADMIN, "ncsa")
    assert roles.grant(user, at_ncsa)
    assert not roles.grant(user, at_ncsa)
    assert roles.grants_of(user) == [at_ncsa]
    assert flags(user) == (True, False)
    assert roles.revoke(user, at_ncsa)
    assert not roles.revoke(user, at_ncsa)
    assert roles.grants_of(user) == []
    assert flags(user) == (False, False)
    assert not user.groups.exists()


def test_sites_of_a_role_that_was_taken_away_do_not_come_back_with_another_site() -> None:
    user = new_user()
    for name in ("ncsa", "sdsc"):
        Site.objects.create(name=name)
    roles.grant(user, Grant(UserRole.SITE_ADMIN, "ncsa"))
    user.groups.clear()
    roles.grant(user, Grant(UserRole.SITE_ADMIN, "sdsc"))
    assert roles.grants_of(user) == [Grant(UserRole.SITE_ADMIN, "sdsc")]


def test_the_flags_of_an_administrator_follow_the_group_in_either_direction() -> None:
    new_user("root", is_superuser=True)
    user = new_user()
    group = roles.role_group(UserRole.ADMINISTRATOR)
    user.groups.add(group)
    assert flags(user) == (True, True)
    user.groups.clear()
    assert flags(user) == (False, False)
    group.user_set.add(user)
    user.refresh_from_db()
    assert flags(user) == (True, True)
    group.delete()
    user.refresh_from_db()
    assert flags(user) == (False, False)


def test_a_superuser_without_the_group_stays_one_when_other_roles_change() -> None:
    root = new_user("root", is_superuser=True, is_staff=True)
    roles.grant(root, Grant(UserRole.OPERATOR))
    roles.revoke(root, Grant(UserRole.OPERATOR))
    assert flags(root) == (True, True)
    assert roles.grants_of(root) == [Grant(UserRole.ADMINISTRATOR)]


def test_the_last_active_administrator_keeps_the_role() -> None:
    root = new_user("root", is_superuser=True)
    new_user("gone", is_superuser=True, is_active=False)
    with pytest.raises(LastAdministrator, match="root is the last active administrator"):
        roles.revoke(root, Grant(UserRole.ADMINISTRATOR))
    assert flags(root)[1]
    roles.grant(new_user(), Grant(UserRole.ADMINISTRATOR))
    assert roles.revoke(root, Grant(UserRole.ADMINISTRATOR))
    assert flags(root) == (False, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("root", "expected one of the roles viewer, scheduler, site_admin"),
        ("", "expected one of the roles"),
        ("site_admin", "name the site"),
        ("site_admin:", "there is no site ''"),
        ("site_admin:nowhere", "there is no site 'nowhere'"),
        ("operator:ncsa", "the role operator is not granted at a site, got 'ncsa'"),
    ],
)
def test_an_invalid_grant_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidGrant, match=message):
        roles.parse_grant(text)


def test_a_grant_is_written_as_it_is_read() -> None:
    Site.objects.create(name="ncsa")
    for text in ("viewer", "scheduler", "site_admin:ncsa", "operator", "administrator"):
        assert str(roles.parse_grant(text)) == text
