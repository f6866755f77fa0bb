"""Patterns of a series: distribution in standard deviations, hours of the week, stages that make it vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils import timezone

from monitor.core.units import humanised
from monitor.depot.rollups.hour_of_week import HOURS
from monitor.depot.series.segments import segment_status
from monitor.models import Series
from monitor.web.charts import pattern_svg
from monitor.web.charts.chart_choice import read_choice
from monitor.web.charts.patterns import Patterns, patterns
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range, zone
from monitor.web.pages.series import metric_names

if TYPE_CHECKING:
    from monitor.web.charts.time_range import PageRange


@members_only
def page(request: HttpRequest, name: str) -> HttpResponse:
    series = get_object_or_404(Series.objects.visible_to(request.user), name=name)
    chosen = time_range(request, timezone.now(), default="30d")
    context = {
        **(compute(request, "patterns", lambda: _patterns(request, series, chosen)) or {}),
        "series": series,
        "time_range": chosen,
        "crumbs": [("Series", reverse("series-list")), (series.name, reverse("series", args=[name]))],
        "bin_columns": ("Standard deviations", "Runs"),
        "hour_columns": ("Weekday", "Hour", "Mean", "Passed runs"),
    }
    return render(request, "pages/series_patterns.html", context)


def _patterns(request: HttpRequest, series: Series, chosen: PageRange) -> dict[str, Any]:
    """Return the context of the filters, and of the drawings of the segment and metric that they choose."""
    status, names = segment_status(series), metric_names(series)
    segments = {str(segment.number): segment for segment in status.segments}
    newest = status.current or (status.segments[-1] if status.segments else None)
    segment = segments.get(request.GET.get("segment", ""), newest)
    metric = read_choice(request.GET.dict(), names).metric
    found = patterns(series, segment, chosen.start, chosen.end, zone(request), metric) if segment else None
    numbers = [(number, f"segment {number}") for number in segments]
    return {
        "patterns": found,
        "drawings": _drawings(found) if found else {},
        "fields": [
            FilterField("metric", "Metric", metric, [(each, each) for each in names]),
            FilterField(
                "segment", "Segment", str(segment.number) if segment else "", numbers or [("", "none")]
            ),
        ],
    }


def _drawings(found: Patterns) -> dict[str, object]:
    """Return the drawings, and the rows of the tables behind them."""
    unit, histogram, week = found.unit, found.histogram, found.week
    return {
        "sigmas": pattern_svg.sigma_bars(histogram, unit) if histogram else "",
        "bins": [
            (f"{low:+.1f} to {high:+.1f}", f"{count:,}")
            for low, high, count in zip(histogram.edges, histogram.edges[1:], histogram.counts, strict=False)
        ]
        if histogram
        else [],
        "percentiles": [(f"p{q}", humanised(value, unit)) for q, value in histogram.quantiles.items()]
        if histogram
        else [],
        "week": pattern_svg.week_cells(week, unit) if week.passed.any() else "",
        "hours": [
            (
                day,
                f"{hour:02d}:00",
                humanised(float(week.mean[number][hour]), unit),
                f"{week.passed[number][hour]:,}",
            )
            for number, day in enumerate(pattern_svg.WEEKDAYS)
            for hour in range(HOURS)
            if week.passed[number][hour]
        ],
        "shares": pattern_svg.share_bars(found.shares) if found.shares else "",
    }


urlpatterns = [path("series/<slug:name>/patterns/", page, name="series-patterns")]
