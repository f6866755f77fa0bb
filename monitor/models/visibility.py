"""The rule that exempts users from the restriction of suites to viewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.models.role import UserRole, roles_of

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


def sees_all(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may see every suite and its content, as operators and administrators may.

    This is the only such rule; ``ApiToken.objects.senders`` repeats it in SQL.
    """
    return bool(
        user.is_active and (getattr(user, "is_superuser", False) or UserRole.OPERATOR in roles_of(user))
    )
