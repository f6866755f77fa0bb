"""Roles: what a user may do, as groups of these names. ``monitor.access.roles`` grants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import PermissionsMixin
from django.db import models

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

_KEPT = "_gridcast_roles"  # the attribute of a user object that keeps its roles


class UserRole(models.TextChoices):
    """The roles, from the fewest rights to the most. A user may have several."""

    VIEWER = "viewer"
    SCHEDULER = "scheduler"
    SITE_ADMIN = "site_admin"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


def roles_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[UserRole]:
    """Return the roles of *user*; ``viewer`` if it has none, nothing if it is inactive or anonymous.

    The first call reads the groups of *user*; later ones of the same object return the same roles.
    """
    if not (user.is_active and isinstance(user, PermissionsMixin)):
        return frozenset()
    kept: frozenset[UserRole] | None = getattr(user, _KEPT, None)
    if kept is not None:
        return kept
    groups = () if user.is_superuser else user.groups.filter(name__in=UserRole.values)
    return keep_roles(user, [group.name for group in groups])


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
    """Let the next ``roles_of`` of this object read the groups again."""
    if hasattr(user, _KEPT):
        delattr(user, _KEPT)


def reads_measurements(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may read runs, failures and all else that is measured; else only forecasts."""
    return bool(roles_of(user) - {UserRole.SCHEDULER})
