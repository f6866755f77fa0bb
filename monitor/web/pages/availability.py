"""Availability: all sites in a month, a site's month by day and service, and recomputations."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.analysis.availability import report
from monitor.analysis.availability.months import (
    FIRST_MONTH,
    InvalidMonth,
    month_after,
    month_before,
    parse_month,
)
from monitor.analysis.availability.recompute import InvalidRecomputation, RecomputationRequest, recompute
from monitor.analysis.availability.versions import find_version
from monitor.models import Site
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.models.site import may_manage_somewhere
from monitor.web.pages.http.access import check_manageable, managers_only, members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute

MOST_RECOMPUTATIONS = 50
SITES_A_PAGE = 40


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show every site in the month of the query string."""
    now = timezone.now()
    month = _month(request.GET.get("month", ""), now)

    def sites() -> dict[str, object]:
        sites = report.sites_in_month(month, request.user)
        pages = max(1, -(-len(sites) // SITES_A_PAGE))
        number = min(max(page_number(request.GET.get("page", "")), 1), pages)
        shown = sites[(number - 1) * SITES_A_PAGE : number * SITES_A_PAGE]
        months = report.months_of_sites(month, now, sites=shown)
        return {"months": months, "site_count": len(sites), "page": number, "pages": pages}

    context = {**(compute(request, "sites", sites) or {}), **_context(month, now)}
    return render(request, "pages/availability.html", context)


@members_only
def site(request: HttpRequest, name: str) -> HttpResponse:
    """Show the days and services of a site in a month, and what recomputations changed."""
    found, now = _visible(request, name), timezone.now()
    month = _month(request.GET.get("month", ""), now)

    def shown() -> report.MonthOfSite | None:
        return next(iter(report.months_of_sites(month, now, request.user, [found])), None)

    recomputations = report.recomputations_for(request.user, found)
    context = {
        "crumbs": [
            ("Availability", f"{reverse('availability')}?month={month:%Y-%m}"),
            (found.name, reverse("site", args=[found.name])),
        ],
        "site": found,
        "shown": compute(request, "days", shown),
        "services": compute(request, "services", lambda: report.services_of_site(found, month, request.user)),
        "recomputations": compute(
            request, "recomputations", lambda: list(recomputations[:MOST_RECOMPUTATIONS])
        ),
        "versions": compute(request, "recompute", lambda: report.present_versions(now.date(), found)),
        "may_recompute": may_manage_somewhere(request.user)
        and Site.objects.manageable_by(request.user).filter(pk=found.pk).exists(),
        "most_reason": MAX_REASON_CHARACTERS,
        **_context(month, now),
    }
    return render(request, "pages/availability_site.html", context)


@members_only
def recomputations(request: HttpRequest) -> HttpResponse:
    rows = report.recomputations_for(request.user)[:MOST_RECOMPUTATIONS]
    context = {
        "crumbs": crumbs_of("availability"),
        "recomputations": compute(request, "recomputations", lambda: list(rows)),
        "most": MOST_RECOMPUTATIONS,
        "now": timezone.now(),
    }
    return render(request, "pages/availability_recomputations.html", context)


@members_only
@require_POST
@managers_only()
def recompute_month(request: HttpRequest, name: str) -> HttpResponse:
    """Recompute the month that the form names, for the reason that it gives."""
    found, now = _visible(request, name), timezone.now()
    check_manageable(found, Site.objects.manageable_by(request.user))
    text, profile = (request.POST.get(key, "").replace("\x00", "") for key in ("month", "profile"))
    try:
        month, version = parse_month(text, now), find_version(profile)
        if profile and version is None:
            raise InvalidRecomputation(f"there is no version {profile!r} of a profile")
        order = RecomputationRequest(
            sites=[found],
            first=month,
            last=month_after(month) - timedelta(days=1),
            requester=request.user.get_username(),
            reason=request.POST.get("reason", "").replace("\x00", ""),
            version=version,
        )
        recompute(order, now)
    except (InvalidMonth, InvalidRecomputation) as error:
        messages.error(request, f"Not recomputed: {error}.")
    else:
        messages.success(request, "Recomputed. The difference is listed below.")
    return redirect(f"{reverse('availability-site', args=[name])}?month={_month(text, now):%Y-%m}")


def _month(text: str, now: datetime) -> date:
    """Return the month *text*; the present one if that is no month."""
    try:
        return parse_month(text, now)
    except InvalidMonth:
        return parse_month("", now)


def _visible(request: HttpRequest, name: str) -> Site:
    found = report.visible_site(request.user, name)
    if found is None:
        raise Http404
    return found


def _context(month: date, now: datetime) -> dict[str, object]:
    after = month_after(month)
    return {
        "month": month,
        "earlier": month_before(month) if month > FIRST_MONTH else None,
        "later": after if after <= now.date() else None,
        "latest": f"{now:%Y-%m}",
        "now": now,
    }


entries = [
    NavigationEntry("Reports", "Availability", "availability", pages=("availability-site",)),
    NavigationEntry("Reports", "Recomputations", "availability-recomputations"),
]
urlpatterns = [
    path("availability/", page, name="availability"),
    path("availability/recomputations/", recomputations, name="availability-recomputations"),
    path("availability/sites/<slug:name>/", site, name="availability-site"),
    path("availability/sites/<slug:name>/recompute/", recompute_month, name="availability-recompute"),
]
