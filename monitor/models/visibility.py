"""Which users are not restricted to the suites that they are viewers of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


def sees_all(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may see every suite and all that belongs to one: an active superuser.

    The one rule; ``ApiToken.objects.senders`` states it once more in SQL.
    """
    return bool(user.is_active and getattr(user, "is_superuser", False))
