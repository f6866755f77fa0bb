"""Roles: what a user may do, as groups of these names. ``monitor.access.roles`` grants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import PermissionsMixin
from django.db import models

from monitor.db import binary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

# The attributes of a user object that keep its roles and its permissions.
_KEPT, _PERMISSIONS = "_gridcast_roles", "_gridcast_permissions"
_RIGHTS = """
SELECT array(
    SELECT name::text FROM auth_user_groups AS member JOIN auth_group AS role ON role.id = member.group_id
    WHERE member.user_id = %(user)b AND name = ANY (%(roles)b)
), array(
    SELECT type.app_label || '.' || permission.codename FROM auth_permission AS permission
    JOIN django_content_type AS type ON type.id = permission.content_type_id
    WHERE permission.id IN (
        SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %(user)b
        UNION SELECT permission_id FROM auth_group_permissions JOIN auth_user_groups USING (group_id)
        WHERE user_id = %(user)b
    )
)
"""


class UserRole(models.TextChoices):
    """The roles, from the fewest rights to the most. A user may have several."""

    VIEWER = "viewer"
    SCHEDULER = "scheduler"
    SITE_ADMIN = "site_admin"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


def roles_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[UserRole]:
    """Return the roles of *user*; ``viewer`` if it has none, nothing if it is inactive or anonymous.

    The first call reads the rights of *user*; later ones of the same object return the same roles.
    """
    if not (user.is_active and isinstance(user, PermissionsMixin)):
        return frozenset()
    kept: frozenset[UserRole] | None = getattr(user, _KEPT, None)
    if kept is not None:
        return kept
    return keep_roles(user, () if user.is_superuser else _read_rights(user))


def permissions_of(user: PermissionsMixin) -> frozenset[str]:
    """Return the permissions of *user*, active and no superuser, by itself and by its groups.

    The first call reads the rights of *user*; later ones of the same object return the same permissions.
    """
    if not hasattr(user, _PERMISSIONS):
        roles = _read_rights(user)
        if not hasattr(user, _KEPT):
            keep_roles(user, roles)
    kept: frozenset[str] = getattr(user, _PERMISSIONS)
    return kept


def _read_rights(user: PermissionsMixin) -> list[str]:
    """Return the roles of *user*, and keep its permissions in the object: most pages need both."""
    roles: list[str]
    roles, permissions = binary.row(_RIGHTS, {"user": user.pk, "roles": UserRole.values})
    setattr(user, _PERMISSIONS, frozenset(permissions))
    return roles


def keep_roles(user: PermissionsMixin, groups: Iterable[str]) -> frozenset[UserRole]:
    """Return the roles of *user* as a member of *groups*, and keep them in the object."""
    roles = {UserRole(name) for name in groups}
    if user.is_superuser:
        roles.add(UserRole.ADMINISTRATOR)
    else:
        roles.discard(UserRole.ADMINISTRATOR)
    kept = frozenset(roles or {UserRole.VIEWER})
    setattr(user, _KEPT, kept)
    return kept


def forget_roles(user: PermissionsMixin) -> None:
    """Let the next ``roles_of`` and ``permissions_of`` of this object read its rights again."""
    for kept in (_KEPT, _PERMISSIONS):
        if hasattr(user, kept):
            delattr(user, kept)


def reads_measurements(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may read runs, failures and all else that is measured; else only forecasts."""
    return bool(roles_of(user) - {UserRole.SCHEDULER})
