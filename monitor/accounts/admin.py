"""The admin site's pages of second factors, connected accounts and sessions: read and removed, not edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin

if TYPE_CHECKING:
    from django.http import HttpRequest

    RemovableBase = admin.ModelAdmin[Any]
else:
    RemovableBase = admin.ModelAdmin

# What users change on their own pages, what is configured by the environment, and the keys of sessions.
for model in (Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken, UserSession):
    admin.site.unregister(model)


class Removable(RemovableBase):
    """Base class for rows that an administrator can remove but not change."""

    list_select_related = ("user",)
    search_fields = ("user__username",)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _object: Any = None) -> bool:
        return False


@admin.register(Authenticator)
class SecondFactorAdmin(Removable):
    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    fields = list_display


@admin.register(SocialAccount)
class ConnectedAccountAdmin(Removable):
    list_display = ("user", "uid", "date_joined", "last_login")
    fields = list_display


@admin.register(UserSession)
class UserSessionAdmin(Removable):
    """Sessions, without their keys. Deleting one ends it."""

    list_display = ("user", "ip", "user_agent", "created_at", "last_seen_at")
    fields = list_display

    def delete_model(self, _request: HttpRequest, obj: UserSession) -> None:
        obj.end()

    def delete_queryset(self, _request: HttpRequest, queryset: Any) -> None:
        for session in queryset:
            session.end()
