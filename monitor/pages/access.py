"""The roles of all users, granted and revoked by administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods

from monitor.access import roles
from monitor.access.roles import RoleError
from monitor.models import Site
from monitor.models.role import UserRole, is_administrator
from monitor.pages.http.access import members_only
from monitor.pages.http.navigation import NavigationEntry
from monitor.pages.http.paging import page_number
from monitor.pages.http.parts import compute

USERS_A_PAGE = 100
ROLE_TITLES = {
    UserRole.VIEWER: "reads what the viewers of suites may see",
    UserRole.SCHEDULER: "forecasts, states of sites and outcomes only",
    UserRole.SITE_ADMIN: "reads; runs, holds, alerts, maintenance and reporters of own sites",
    UserRole.OPERATOR: "sees all, operates and configures everything, but no accounts",
    UserRole.ADMINISTRATOR: "everything",
}


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponseBase:
    if not is_administrator(request.user):
        raise PermissionDenied("Only administrators see and grant roles.")
    return _change(request) if request.method == "POST" else _show(request)


def _show(request: HttpRequest) -> HttpResponse:
    users = User.objects.order_by("username").prefetch_related("groups", "administered_sites__site")
    first = (page_number(request.GET.get("page", "")) - 1) * USERS_A_PAGE
    shown = users[first : first + USERS_A_PAGE + 1]
    rows = compute(request, "users", lambda: [(user, roles.grants_of(user)) for user in shown]) or []
    context: dict[str, Any] = {
        "rows": rows[:USERS_A_PAGE],
        "has_more": len(rows) > USERS_A_PAGE,
        "page": page_number(request.GET.get("page", "")),
        "roles": [(role.value, title) for role, title in ROLE_TITLES.items()],
        "sites": compute(request, "grant", lambda: list(Site.objects.values_list("name", flat=True))),
    }
    return render(request, "pages/access.html", context)


def _change(request: HttpRequest) -> HttpResponse:
    """Grant or revoke the role that the form names."""
    posted = {
        name: request.POST.get(name, "").replace("\x00", "") for name in ("verb", "user", "role", "site")
    }
    holder = User.objects.filter(username=posted["user"]).first()
    verbs = {"grant": roles.grant, "revoke": roles.revoke}
    if holder is None or posted["verb"] not in verbs:
        messages.error(
            request, f"There is no user {posted['user']!r}." if holder is None else "Unknown action."
        )
        return redirect("access")
    try:
        named = roles.checked_grant(posted["role"], posted["site"] or None)
        verbs[posted["verb"]](holder, named)
    except RoleError as error:
        messages.error(request, f"Not changed: {error}.")
    else:
        done = "granted to" if posted["verb"] == "grant" else "revoked from"
        messages.success(request, f"{named} {done} {holder}.")
    return redirect("access")


entries = [
    NavigationEntry("Operations", "Users and roles", "access", permits=is_administrator),
]
urlpatterns = [path("access/", page, name="access")]
