"""Roles: what a user may do, as groups of these names. ``monitor.depot.access.roles`` grants them.

A user has the roles granted here, and those of the identity by which it acts: the one that its session began
with, or with which a token was made. The SQL function ``monitor_groups`` says which groups these are,
``monitor_is_admitted`` whether they count, and ``monitor_own_sites`` at which sites the user is a site admin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.contrib.auth.models import PermissionsMixin
from django.db import models

from monitor.core.db import binary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User

Holder = TypeVar("Holder", bound="User")

ANY_IDENTITY = 0  # instead of the key of one: all identities of the user, for acts that do not name theirs

# The attributes of a user object that keep its identity, its roles and its permissions.
_IDENTITY, _KEPT, _PERMISSIONS = "_gridcast_identity", "_gridcast_roles", "_gridcast_permissions"
_RIGHTS = """
SELECT monitor_is_admitted(%(user)b, %(identity)b), array(
    SELECT name::text FROM monitor_groups(%(user)b, %(identity)b) AS member
    JOIN auth_group AS role ON role.id = member.group_id WHERE name = ANY (%(roles)b)
), array(
    SELECT type.app_label || '.' || permission.codename FROM auth_permission AS permission
    JOIN django_content_type AS type ON type.id = permission.content_type_id
    WHERE permission.id IN (
        SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %(user)b
        UNION SELECT permission_id FROM auth_group_permissions
            JOIN monitor_groups(%(user)b, %(identity)b) USING (group_id)
    )
)
"""


_ADMITTED = "SELECT monitor_is_admitted(%(user)b, %(identity)b)"


class UserRole(models.TextChoices):
    """The roles, from the fewest rights to the most. A user may have several."""

    VIEWER = "viewer"
    SCHEDULER = "scheduler"
    SITE_ADMIN = "site_admin"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


STAFF = frozenset({UserRole.SITE_ADMIN, UserRole.OPERATOR, UserRole.ADMINISTRATOR})


def acting(user: Holder, identity: int | None) -> Holder | None:
    """Return *user* with its granted roles and those of *identity*; None if the user is not admitted by it.

    A suspended identity admits to nothing. Without an identity, the roles granted here count; a user that has
    identities and no role granted here is not admitted then.
    """
    act_as(user, identity)
    return user if roles_of(user) else None


def is_admitted(user: User, identity: int | None) -> bool:
    """Return whether *user* would be admitted by *identity*, as ``acting`` says; *user* stays as it is."""
    (answer,) = binary.row(_ADMITTED, {"user": user.pk, "identity": identity})
    return bool(answer)


def act_as(user: User, identity: int | None) -> None:
    """Let *user* act by *identity* from now on, as ``acting`` describes, without asking whether it may."""
    forget_roles(user)
    setattr(user, _IDENTITY, identity)


def identity_of(user: AbstractBaseUser | AnonymousUser) -> int | None:
    """Return the key of the identity by which *user* acts; None: it acts by what was granted here."""
    identity: int | None = getattr(user, _IDENTITY, None)
    return identity


def roles_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[UserRole]:
    """Return the roles of *user*; ``viewer`` if it has none, nothing if it is not admitted or anonymous.

    The first call reads the rights of *user*; later ones of the same object return the same roles.
    """
    if not (user.is_active and isinstance(user, PermissionsMixin)):
        return frozenset()
    kept: frozenset[UserRole] | None = getattr(user, _KEPT, None)
    if kept is not None:
        return kept
    if user.is_superuser and identity_of(user) is None:
        return keep_roles(user, ())
    return _read_rights(user)


def permissions_of(user: PermissionsMixin) -> frozenset[str]:
    """Return the permissions of *user*, active and no administrator, by itself and by its groups.

    The first call reads the rights of *user*; later ones of the same object return the same permissions.
    """
    if not hasattr(user, _PERMISSIONS):
        kept_roles = getattr(user, _KEPT, None)
        _read_rights(user)
        if kept_roles is not None:
            setattr(user, _KEPT, kept_roles)
    kept: frozenset[str] = getattr(user, _PERMISSIONS)
    return kept


def _read_rights(user: PermissionsMixin) -> frozenset[UserRole]:
    """Return the roles of *user*, and keep them and its permissions in the object: most pages need both."""
    parameters = {"user": user.pk, "identity": getattr(user, _IDENTITY, None), "roles": UserRole.values}
    is_admitted, roles, permissions = binary.row(_RIGHTS, parameters)
    if not is_admitted:
        setattr(user, _PERMISSIONS, frozenset())
        setattr(user, _KEPT, frozenset())
        return frozenset()
    setattr(user, _PERMISSIONS, frozenset(permissions))
    return keep_roles(user, roles)


def keep_roles(user: PermissionsMixin, groups: Iterable[str]) -> frozenset[UserRole]:
    """Return the roles of *user*, which is admitted, as a member of *groups*; keep them in the object."""
    roles = {UserRole(name) for name in groups}
    if user.is_superuser:
        roles.add(UserRole.ADMINISTRATOR)
    kept = frozenset(roles or {UserRole.VIEWER})
    setattr(user, _KEPT, kept)
    return kept


def forget_roles(user: PermissionsMixin) -> None:
    """Let the next ``roles_of`` and ``permissions_of`` of this object read its rights again."""
    for kept in (_KEPT, _PERMISSIONS):
        if hasattr(user, kept):
            delattr(user, kept)


def is_administrator(user: AbstractBaseUser | AnonymousUser) -> bool:
    return UserRole.ADMINISTRATOR in roles_of(user)


def opens_admin(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may open ``/admin/``, where each role sees and changes what it permits."""
    return bool(roles_of(user) & STAFF)


def reads_measurements(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may read runs, failures and all else that is measured; else only forecasts."""
    return bool(roles_of(user) - {UserRole.SCHEDULER})
