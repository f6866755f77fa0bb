"""One user: profile, roles, identities, ways to log in, sessions, groups, tokens; and their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from monitor.depot.access import roles
from monitor.models import ApiToken
from monitor.web.accounts import door_reasons, groups, sessions
from monitor.web.pages.http.access import administrators_only
from monitor.web.pages.http.account_change import Forbid, Permit, change_routes, permission_labels
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.user_changes import (
    ChangeProfile,
    DeleteUser,
    DisableUser,
    DisconnectIdentity,
    EnableUser,
    EndSessions,
    GrantRole,
    JoinGroup,
    LeaveGroup,
    RemoveFactor,
    RevokeRole,
    RevokeToken,
    SetPassword,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponseBase

CHANGES = (
    *(
        ChangeProfile,
        GrantRole,
        RevokeRole,
        JoinGroup,
        LeaveGroup,
        Permit,
        Forbid,
        DisableUser,
        EnableUser,
        SetPassword,
    ),
    *(RemoveFactor, EndSessions, DisconnectIdentity, RevokeToken, DeleteUser),
)


@administrators_only
@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponseBase:
    holder, now = get_object_or_404(User, pk=pk), timezone.now()
    context: dict[str, Any] = {
        "crumbs": crumbs_of("access"),
        "holder": holder,
        "grants": compute(request, "roles", lambda: roles.grants_of(holder)),
        "identities": compute(request, "identities", lambda: list(holder.identities.all())),
        "login": compute(request, "login", lambda: _login(holder, now)),
        "sessions": compute(request, "sessions", lambda: list(sessions.of_user(holder))),
        "groups": compute(request, "groups", lambda: list(groups.without_roles().filter(user=holder))),
        "permissions": compute(request, "groups", lambda: permission_labels(holder)),
        "tokens": compute(request, "tokens", lambda: list(_tokens(holder, now))),
        "provider": settings.GRIDCAST_IDENTITY_PROVIDER,
        "is_own": holder == request.user,
        "now": now,
    }
    return render(request, "pages/access_user.html", context)


def _login(holder: User, now: datetime) -> dict[str, Any]:
    factors = Authenticator.objects.filter(user=holder).order_by("created_at")
    return {
        "closed": door_reasons.closed_door(holder, now),
        "opened_until": door_reasons.opened_until(holder, now),
        "factors": list(factors),
    }


def _tokens(holder: User, now: datetime) -> Any:
    usable = ApiToken.objects.filter(user=holder).usable(now)
    return usable.select_related("reporter", "site").order_by("-pk")


urlpatterns = [
    path("access/users/<int:pk>/", page, name="access-user"),
    *change_routes("access/users/<int:pk>/", CHANGES, User.objects.all, "access"),
]
