"""The suite and the site that lists begin with, until a filter says otherwise; cookies keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from monitor.models import Site, Suite
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.reader import COOKIE_SECONDS, DEFAULT_COOKIES

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
@members_only
def choose(request: HttpRequest) -> HttpResponse:
    """Keep the posted suite and site; an empty name is no default."""
    request.is_no_change = True  # type: ignore[attr-defined]  # of the depot: no event of the audit record
    answer, user = redirect("account"), request.user
    visible = {"suite": Suite.objects.visible_to(user), "site": Site.objects.visible_to(user)}
    for noun, cookie in DEFAULT_COOKIES.items():
        name = request.POST.get(noun, "").strip()
        if not name:
            answer.delete_cookie(cookie, samesite="Lax")
        elif visible[noun].filter(name=name).exists():
            answer.set_cookie(
                cookie, name, max_age=COOKIE_SECONDS, samesite="Lax", secure=request.is_secure()
            )
        else:
            messages.error(request, f"Not changed: there is no {noun} {name[:50]!r} that you may see.")
    return answer


urlpatterns = [path("account/defaults/", choose, name="defaults")]
