"""The time zone in which a reader sees times; a cookie keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from monitor.web.pages.http.access import accounts_only
from monitor.web.pages.http.reader import COOKIE_SECONDS, ZONE_COOKIE
from reporters.schedule import InvalidSchedule, find_zone

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
@accounts_only
def choose(request: HttpRequest) -> HttpResponse:
    """Keep the posted zone and lead back; a typed zone, which comes last, counts more than a button."""
    request.is_no_change = True  # type: ignore[attr-defined]  # of the depot: no event of the audit record
    name = next((each.strip() for each in reversed(request.POST.getlist("zone")) if each.strip()), "UTC")
    following = request.POST.get("next", "")
    is_own = url_has_allowed_host_and_scheme(following, {request.get_host()}, request.is_secure())
    answer = redirect(following if is_own else "overview")
    try:
        find_zone(name)
    except InvalidSchedule as error:
        messages.error(request, f"Not changed: {error}.")
    else:
        answer.set_cookie(
            ZONE_COOKIE, name, max_age=COOKIE_SECONDS, samesite="Lax", secure=request.is_secure()
        )
    return answer


urlpatterns = [path("account/time-zone/", choose, name="time-zone")]
