"""The admin site: its titles, and the roles that may open it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.admin import AdminSite

from monitor.models.role import opens_admin

if TYPE_CHECKING:
    from django.http import HttpRequest


class GridcastAdminSite(AdminSite):
    site_header = site_title = "gridcast"
    index_title = "Configuration"

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether a role of the user opens the site, whether granted here or named by the provider."""
        return opens_admin(request.user)
