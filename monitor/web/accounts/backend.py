"""The authentication backend: Django's, with permissions read in one statement, together with the roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from monitor.models import EndedSessions
from monitor.models.role import is_administrator, permissions_of
from monitor.web.accounts import passwords

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser
    from django.http import HttpRequest


class RightsBackend(ModelBackend):
    """Django asks separately for the permissions of a user and of its groups."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: Any
    ) -> User | None:
        """Return the user; note in *request* that the password of a disabled account was right."""
        if username is None or password is None:
            return None
        user = User.objects.filter(username=username).first()
        if user is None:
            make_password(password)  # takes the time that the check of an existing user takes
            return None
        if not passwords.is_right(user, password):
            return None
        if not user.is_active and request is not None:
            request.is_of_disabled_account = True  # type: ignore[attr-defined]  # read for the log
        return user if user.is_active else None

    def get_user(self, user_id: int) -> User | None:
        """Return the active user of a session; *times_ended*: how many times all its sessions were ended."""
        times = EndedSessions.objects.filter(user=OuterRef("pk")).values("times")
        ended = User.objects.annotate(times_ended=Coalesce(Subquery(times), 0))
        user = ended.filter(pk=user_id).first()
        return user if user is not None and user.is_active else None

    def get_all_permissions(self, user_obj: User | AnonymousUser, obj: Any = None) -> set[str]:
        if obj is not None or not isinstance(user_obj, User) or is_administrator(user_obj):
            return super().get_all_permissions(user_obj, obj)
        return set(permissions_of(user_obj)) if user_obj.is_active else set()

    def has_perm(self, user_obj: User | AnonymousUser, perm: str, obj: Any = None) -> bool:
        """Return whether a role permits *perm*; Django itself asks for the flag of an administrator only."""
        return is_administrator(user_obj) or super().has_perm(user_obj, perm, obj)

    def has_module_perms(self, user_obj: User | AnonymousUser, app_label: str) -> bool:
        return is_administrator(user_obj) or super().has_module_perms(user_obj, app_label)
