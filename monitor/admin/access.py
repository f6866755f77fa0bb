"""The admin pages of tokens, site admins and the audit record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from monitor.admin.base import ReadOnly, VisibleObjects
from monitor.models import ApiToken, AuditEvent, SiteAdministrator

if TYPE_CHECKING:
    from django.http import HttpRequest

_TOKEN_TIMES = ("created_at", "expires_at", "family_expires_at", "rotated_at", "revoked_at", "last_used_at")


@admin.register(ApiToken)
class ApiTokenAdmin(VisibleObjects):
    """Tokens can be viewed and revoked; their text is shown only when they are issued."""

    list_display = ("name", "prefix", "user", "scopes", "reporter", "site", "expires_at", "last_used_at")
    list_select_related = ("user", "reporter", "site")
    readonly_fields = (
        *("user", "prefix", "scopes", "reporter", "site", "parent"),
        *(*_TOKEN_TIMES, "last_used_from"),
    )
    exclude = ("sha256",)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False


@admin.register(SiteAdministrator)
class SiteAdministratorAdmin(VisibleObjects):
    """The sites of users with the role ``site_admin``; the role itself is a group of the user."""

    list_display = ("site", "user")
    list_select_related = ("site", "user")


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("last_at", "outcome", "repeats", "user", "channel", "action", "target", "address")
    list_filter = ("outcome", "channel")
