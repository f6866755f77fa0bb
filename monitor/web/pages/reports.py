"""Reports on availability: the past weeks and months, and the report of one, as a page, CSV and PDF."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils import timezone
from django.utils.text import capfirst

from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.reports import availability_tables as tables
from monitor.web.reports.availability_report import MOST_EPISODES, availability_report, past_periods
from monitor.web.reports.pdf import PdfUnavailable, pdf_renderer
from monitor.web.reports.periods import (
    InvalidPeriod,
    PeriodKind,
    ReportPeriod,
    month_of,
    parse_period,
    week_of,
)

MOST_SITES = 100  # on the page


@members_only
def listing(request: HttpRequest, kind: str) -> HttpResponse:
    """List the past periods of *kind*, newest first."""
    now, period_kind = timezone.now(), PeriodKind(kind)
    present = (month_of if period_kind == PeriodKind.MONTHLY else week_of)(now.date())
    context = {
        "kind": period_kind,
        "columns": tables.PERIOD_COLUMNS,
        "periods": compute(
            request, "periods", lambda: tables.period_lines(past_periods(request.user, period_kind, now))
        ),
        "present": present,
    }
    return render(request, "pages/reports.html", context)


@members_only
@few_at_once
def page(request: HttpRequest, period: str) -> HttpResponse:
    chosen, now = _period(period), timezone.now()
    later = chosen.after
    context = {
        **(compute(request, "report", lambda: _content(request, chosen, MOST_SITES)) or {}),
        "period": chosen,
        "later": later if later.start <= now else None,
        "has_links": True,
        "crumbs": [(chosen.kind.capitalize() + " reports", reverse(f"reports-{chosen.kind}"))],
        "now": now,
    }
    return render(request, "pages/report.html", context)


@members_only
@few_at_once
def csv(request: HttpRequest, period: str) -> HttpResponse:
    chosen = _period(period)
    report = availability_report(request.user, chosen, timezone.now())
    return _download(tables.as_csv(report).encode(), "text/csv; charset=utf-8", chosen, "csv")


@members_only
@few_at_once
def pdf(request: HttpRequest, period: str) -> HttpResponse:
    """Send the report as PDF; where it cannot be made, show the page and say what to install."""
    chosen = _period(period)
    try:
        make_pdf = pdf_renderer()
    except PdfUnavailable as error:
        messages.error(request, f"{capfirst(str(error))}. The page prints, too.")
        return redirect("report", chosen.key)
    context = {**_content(request, chosen), "has_links": False, "now": timezone.now()}
    html = render_to_string("reports/availability.html", context)
    return _download(make_pdf(html), "application/pdf", chosen, "pdf")


def _period(text: str) -> ReportPeriod:
    try:
        return parse_period(text, timezone.now())
    except InvalidPeriod as error:
        raise Http404(str(error)) from error


def _content(request: HttpRequest, period: ReportPeriod, at_most: int | None = None) -> dict[str, Any]:
    """Return the context of the tables, with the worst *at_most* sites (None: all)."""
    report = availability_report(request.user, period, timezone.now())
    return {
        "report": report,
        "period": period,
        "columns": tables.COLUMNS,
        "figures": list(zip(tables.COLUMNS, tables.cells(report.total), strict=True)),
        "sites": tables.lines(report.sites[:at_most]),
        "site_count": len(report.sites),
        "suites": tables.lines(report.suites),
        "definitions": tables.DEFINITIONS,
        "most_episodes": MOST_EPISODES,
    }


def _download(content: bytes, kind: str, period: ReportPeriod, suffix: str) -> HttpResponse:
    name = f'attachment; filename="availability-{period.key}.{suffix}"'
    return HttpResponse(content, content_type=kind, headers={"Content-Disposition": name})


entries = [
    NavigationEntry("Reports", "Monthly", "reports-monthly", pages=("report",)),
    NavigationEntry("Reports", "Weekly", "reports-weekly"),
]
urlpatterns = [
    path("reports/monthly/", listing, {"kind": "monthly"}, name="reports-monthly"),
    path("reports/weekly/", listing, {"kind": "weekly"}, name="reports-weekly"),
    path("reports/<slug:period>/", page, name="report"),
    path("reports/<slug:period>/report.csv", csv, name="report-csv"),
    path("reports/<slug:period>/report.pdf", pdf, name="report-pdf"),
]
