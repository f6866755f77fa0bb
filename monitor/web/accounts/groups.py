"""Groups of users that are no roles: viewers of suites, and holders of single permissions.

The groups of roles have the names of roles. ``monitor.depot.access.roles`` alone makes them and fills them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Count

from monitor.depot.access.audit_trail import note
from monitor.models import Suite
from monitor.models.role import UserRole, forget_roles
from monitor.web.accounts.users import AccountError, lock_names

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

MOST_NAME_CHARACTERS = 150
MOST_NAMED = 10


class InvalidGroup(AccountError):
    """The group is a role, its name is not accepted, or a suite needs it."""


def without_roles() -> QuerySet[Group]:
    """Return the groups that are no roles, by name."""
    return Group.objects.exclude(name__in=UserRole.values).order_by("name")


@transaction.atomic
def create(name: str) -> Group:
    """Create the group *name*, without members.

    Raises:
        InvalidGroup: the name is not accepted.
    """
    _check_name(name)
    group = Group.objects.create(name=name)
    note("group", name, after="created")
    return group


@transaction.atomic
def rename(group: Group, name: str) -> None:
    """Rename *group*; its members, permissions and suites stay.

    Raises:
        InvalidGroup: it is a role, or the name is not accepted.
    """
    _check_no_role(group)
    before = group.name
    if name == before:
        return
    _check_name(name, group)
    group.name = name
    group.save(update_fields=["name"])
    note("group", before, before=before, after=name)


@transaction.atomic
def delete(group: Group) -> None:
    """Delete *group*; its members lose what only it permits.

    Raises:
        InvalidGroup: it is a role, or the only viewer of a suite, which all users would see without it.
    """
    _check_no_role(group)
    closed = [suite.name for suite in suites_closed_by(group)[: MOST_NAMED + 1]]
    if closed:
        more = " and more" if len(closed) > MOST_NAMED else ""
        raise InvalidGroup(
            f"{group} is the only viewer of {', '.join(closed[:MOST_NAMED])}{more}, which all users would see"
            " without it: name other viewers first, under Settings, Suites"
        )
    members = sorted(group.user_set.values_list("username", flat=True))
    group.delete()
    note("group", group.name, before={"members": members}, after="deleted")


def suites_closed_by(group: Group) -> QuerySet[Suite]:
    """Return the suites of which *group* is the only viewer."""
    only = Suite.objects.annotate(viewer_count=Count("viewers")).filter(viewer_count=1)
    return Suite.objects.filter(pk__in=only.values("pk"), viewers=group).order_by("sort_name")


def add_member(group: Group, user: User) -> None:
    """Make *user* a member of *group*. Raises InvalidGroup if it is a role: that is granted."""
    _check_no_role(group)
    user.groups.add(group)
    forget_roles(user)
    note("group", f"{group}: {user}", after="member")


def remove_member(group: Group, user: User) -> None:
    """End the membership of *user* in *group*. Raises InvalidGroup if it is a role: that is revoked."""
    _check_no_role(group)
    user.groups.remove(group)
    forget_roles(user)
    note("group", f"{group}: {user}", before="member", after="no member")


def _check_no_role(group: Group) -> None:
    if group.name in UserRole.values:
        raise InvalidGroup(f"{group} is a role: it is granted and revoked, not changed")


def _check_name(name: str, group: Group | None = None) -> None:
    if not (1 <= len(name) <= MOST_NAME_CHARACTERS and name.isprintable() and name == name.strip()):
        shown = name[:MOST_NAME_CHARACTERS]
        raise InvalidGroup(f"name: expected 1 to {MOST_NAME_CHARACTERS} printable characters, got {shown!r}")
    if name.lower() in UserRole.values:
        raise InvalidGroup(f"name: {name!r} is a role")
    lock_names()
    taken = Group.objects.filter(name__iexact=name).first()
    if taken is not None and taken != group:
        raise InvalidGroup(f"name: there is a group {taken.name!r} already")
