"""The reporters: a table of all, and a form to create one for a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from monitor.models import Reporter, Site
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.site import may_manage_somewhere
from monitor.runs.fleet.create import ForeignSite, InvalidReporter, create_reporter
from monitor.web.pages.http.access import managers_only, members_only, wants_part
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.places.reporters import page_of_reporters, server_archive_sha256

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.web.places.reporters import ReporterPage

DEFAULT_CAPACITY = 4


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
@live
def page(request: HttpRequest) -> HttpResponseBase:
    return _create(request) if request.method == "POST" else _show(request)


def _show(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    content = _listed(request, now, page_number(request.GET.get("page", "")))
    shown = content and [
        (row.name, row.state, row.seen_at, row.series, row.latest, row.held, row.alerts)
        for row in content.rows
    ]
    digest = digest_of([shown, content and content.count])
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "overview": content,
        "server_archive": server_archive_sha256(),
        "digest": digest,
        "now": now,
    }
    if wants_part(request):
        return render(request, "parts/reporters.html", context)
    return render(request, "pages/reporters.html", {**context, **_form(request)})


def _listed(request: HttpRequest, now: datetime, page: int) -> ReporterPage | None:
    visible = Reporter.objects.manageable_or_visible_to(request.user)
    return compute(request, "reporters", lambda: page_of_reporters(visible, request.user, now, page))


@managers_only(MANAGE_REPORTERS)
def _create(request: HttpRequest) -> HttpResponse:
    """Create a reporter and show it; if the values are refused, show them again with the error."""
    posted, now = request.POST, timezone.now()
    capacity = posted.get("capacity", "")
    try:
        number = int(capacity) if capacity.isascii() and capacity.isdecimal() and len(capacity) < 10 else 0
        reporter = create_reporter(posted.get("name", ""), posted.get("site", ""), number, request.user)
    except ForeignSite as error:
        raise PermissionDenied(str(error)) from error
    except InvalidReporter as error:
        context = {
            "overview": _listed(request, now, 1),
            "server_archive": server_archive_sha256(),
            "digest": "",
            "now": now,
        }
        form = {**_form(request), "error": str(error)}
        return render(request, "pages/reporters.html", {**context, **form}, status=409)
    messages.success(request, f"Reporter {reporter.name} created. Now make an enrolment code for it.")
    return redirect("reporter", reporter.name)


def _form(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the form, with the values of a refused submission."""
    if not may_manage_somewhere(request.user, MANAGE_REPORTERS):
        return {}
    names = Site.objects.manageable_by(request.user, MANAGE_REPORTERS).values_list("name", flat=True)
    submitted = {key: request.POST.get(key, "") for key in ("name", "site", "capacity")}
    submitted["capacity"] = submitted["capacity"] or str(DEFAULT_CAPACITY)
    sites = compute(request, "new", lambda: list(names))
    return {"may_manage": True, "sites": sites, "submitted": submitted}


entries = [NavigationEntry("Operations", "Reporters", "reporters", pages=("reporter", "reporter-code"))]
urlpatterns = [path("reporters/", page, name="reporters")]
