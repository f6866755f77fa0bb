"""The ping keys of series that programs outside of gridcast report: listed, created and revoked."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from monitor.depot.access import ping_keys
from monitor.depot.access.ping_keys import NotReported
from monitor.models import PingKey, Series
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.series import REPORTED_PROBE
from monitor.web.pages.http.access import check_manageable, managers_only, members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.parts import compute

NAME_CHARACTERS = 100
MOST_REVOKED = 20
PLACEHOLDER = "KEY"  # in the lines of a crontab, as long as no key was created


@members_only
@managers_only(MANAGE_REPORTERS)
def page(request: HttpRequest) -> HttpResponse:
    """List the series that programs outside of gridcast report, with the number of their keys."""
    manageable = Series.objects.manageable_by(request.user, MANAGE_REPORTERS)
    reported = manageable.filter(probe=REPORTED_PROBE)
    usable = Count("ping_keys", filter=Q(ping_keys__revoked_at=None), distinct=True)
    series = compute(request, "series", lambda: list(reported.annotate(usable=usable)))
    context = {"crumbs": crumbs_of("settings"), "series": series}
    return render(request, "pages/ping_keys.html", context)


@members_only
@managers_only(MANAGE_REPORTERS)
@require_http_methods(["GET", "HEAD", "POST"])
def of_series(request: HttpRequest, name: str) -> HttpResponse:
    """Show the keys of a series, or create one; only the answer to its creation contains its text."""
    series = _manageable(request, name)
    if request.method != "POST":
        return _shown(request, series)
    program = request.POST.get("name", "").replace("\x00", "").strip()
    if len(program) > NAME_CHARACTERS:
        return _shown(
            request, series, error=f"expected at most {NAME_CHARACTERS} characters, got {len(program)}"
        )
    try:
        key, text = ping_keys.create(series, program, who=request.user.get_username(), now=timezone.now())
    except NotReported as error:
        return _shown(request, series, error=str(error))
    return _shown(request, series, key=key, text=text)


@members_only
@managers_only(MANAGE_REPORTERS)
@require_POST
def revoke(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    key = get_object_or_404(_manageable(request, name).ping_keys.select_related("series"), pk=pk)
    if ping_keys.revoke(key, who=request.user.get_username(), now=timezone.now()):
        messages.success(request, f"The key {key.prefix}… is revoked: its next ping is refused.")
    else:
        messages.info(request, f"The key {key.prefix}… was revoked before.")
    return redirect("ping-keys-of-series", name)


def _manageable(request: HttpRequest, name: str) -> Series:
    visible = Series.objects.visible_to(request.user).select_related("reporter")
    series = get_object_or_404(visible, name=name)
    check_manageable(series, Series.objects.manageable_by(request.user, MANAGE_REPORTERS))
    return series


def _shown(
    request: HttpRequest, series: Series, *, key: PingKey | None = None, text: str = "", error: str = ""
) -> HttpResponse:
    server = settings.GRIDCAST_URL or request.build_absolute_uri("/").rstrip("/")
    keys = series.ping_keys.order_by("-pk")
    revoked = keys.exclude(revoked_at=None)[:MOST_REVOKED]
    context = {
        "crumbs": crumbs_of("settings", "ping-keys"),
        "series": series,
        "usable": compute(request, "keys", lambda: list(keys.filter(revoked_at=None))),
        "revoked": compute(request, "keys", lambda: list(revoked)),
        "created": key,
        "text": text,
        "url": f"{server}/api/v1/ping/{text or PLACEHOLDER}",
        "cron": series.schedule if series.schedule and "H" not in series.schedule else "0 3 * * *",
        "submitted": request.POST.get("name", "") if error else "",
        "characters": NAME_CHARACTERS,
        "error": error,
        "now": timezone.now(),
    }
    return render(request, "pages/ping_keys_series.html", context, status=409 if error else 200)


urlpatterns = [
    path("settings/ping-keys/", page, name="ping-keys"),
    path("settings/ping-keys/<slug:name>/", of_series, name="ping-keys-of-series"),
    path("settings/ping-keys/<slug:name>/<int:pk>/revoke/", revoke, name="ping-key-revoke"),
]
