"""The authentication backend: Django's, with permissions read in one statement, together with the roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from monitor.models.role import permissions_of

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser


class RightsBackend(ModelBackend):
    """Django asks separately for the permissions of a user and of its groups."""

    def get_all_permissions(self, user_obj: User | AnonymousUser, obj: Any = None) -> set[str]:
        if obj is None and isinstance(user_obj, User) and user_obj.is_active and not user_obj.is_superuser:
            return set(permissions_of(user_obj))
        return super().get_all_permissions(user_obj, obj)
