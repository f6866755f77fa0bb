"""Compare a series with another one: overlay, scatter with regression, correlation at lags."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone

from monitor.models import Series
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.charts import compare_svg
from monitor.web.charts.chart_choice import read_choice
from monitor.web.charts.chart_table import FILES, TIME, ChartTable, Column
from monitor.web.charts.comparison import SeriesComparison, compare, newest_metric
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range, zone
from monitor.web.pages.series import metric_names

if TYPE_CHECKING:
    from monitor.web.charts.time_range import PageRange

SUGGESTED = 50  # series that share a site


@members_only
def page(request: HttpRequest) -> HttpResponse:
    chosen = time_range(request, timezone.now(), default="30d")
    first, second = (_series(request, name) for name in ("series", "with"))

    def compared() -> dict[str, Any]:
        found = _comparison(request, first, second, chosen)
        drawings = _drawings(request, found, _table(found, first, second)) if found else {}
        return {"comparison": found, **drawings}

    context: dict[str, Any] = {
        **(compute(request, "comparison", compared) or {}),
        "series": first,
        "other": second,
        "time_range": chosen,
        "fields": compute(request, "filters", lambda: _fields(request, first, second)),
        "forms": list(FILES),
    }
    if first is not None:
        context["crumbs"] = [
            ("Series", reverse("series-list")),
            (first.name, reverse("series", args=[first.name])),
        ]
    return render(request, "pages/compare.html", context)


@members_only
@few_at_once
def pairs_file(request: HttpRequest, form: str) -> HttpResponse:
    """Download the pairs of the scatter plot."""
    chosen = time_range(request, timezone.now(), default="30d")
    first, second = (_series(request, name) for name in ("series", "with"))
    found = _comparison(request, first, second, chosen)
    if form not in FILES or found is None:
        raise Http404("expected two series that you may see, and csv, json or parquet")
    media_type, encode = FILES[form]
    headers = {"Content-Disposition": f'attachment; filename="pairs-{chosen.file_label}.{form}"'}
    return HttpResponse(encode(_table(found, first, second)), media_type, headers=headers)


def _series(request: HttpRequest, parameter: str) -> Series | None:
    """Return the series that the query string names; say so on the page if there is none."""
    name = _name(request, parameter)
    if not name:
        return None
    series = Series.objects.visible_to(request.user).filter(name=name).first()
    if series is None:
        messages.error(request, f"{parameter}: no series is called {name[:100]}, or you have no access.")
    return series


def _name(request: HttpRequest, parameter: str) -> str:
    return request.GET.get(parameter, "").replace("\x00", "")


def _comparison(
    request: HttpRequest, first: Series | None, second: Series | None, chosen: PageRange
) -> SeriesComparison | None:
    if first is None or second is None:
        return None
    metrics = []
    for series, parameter in ((first, "metric"), (second, "with_metric")):
        choice = read_choice({"metric": request.GET.get(parameter, "")}, metric_names(series))
        metrics.append(newest_metric(series, choice.metric))
    if metrics[0] is None or metrics[1] is None:
        return None
    return compare(metrics[0], metrics[1], chosen.start, chosen.end, _lag(request))


def _lag(request: HttpRequest) -> float:
    try:
        lag = float(request.GET.get("lag", "") or 0)
    except ValueError:
        return 0.0
    return lag if math.isfinite(lag) and abs(lag) <= 366 * 86_400 else 0.0


def _fields(request: HttpRequest, first: Series | None, second: Series | None) -> list[FilterField]:
    suggestions = _suggestions(request, first)
    return [
        FilterField("series", "Series", _name(request, "series"), empty="none"),
        *_metric_field(request, first, "metric", "Metric"),
        FilterField("with", "With", _name(request, "with"), suggestions=suggestions, empty="none"),
        *_metric_field(request, second, "with_metric", "Its metric"),
        FilterField("lag", "Lag (s)", f"{_lag(request):g}"),
    ]


def _metric_field(
    request: HttpRequest, series: Series | None, parameter: str, label: str
) -> list[FilterField]:
    if series is None:
        return []
    names = metric_names(series)
    value = read_choice({"metric": request.GET.get(parameter, "")}, names).metric
    return [FilterField(parameter, label, value, [(each, each) for each in names])]


def _suggestions(request: HttpRequest, first: Series | None) -> list[str]:
    """Return series that share a site with *first*: the likely ones to compare with."""
    if first is None:
        return []
    sites = first.bindings.order_by().values("resource__site")
    visible = Series.objects.visible_to(request.user).exclude(pk=first.pk)
    shared = visible.filter(bindings__resource__site__in=sites).order_by("sort_name").distinct()
    return list(shared.values_list("name", flat=True)[:SUGGESTED])


def _table(found: SeriesComparison, first: Series | None, second: Series | None) -> ChartTable:
    names = [f"{series}: {metric.name}" for series, metric in ((first, found.first), (second, found.second))]
    units = (found.first.unit, found.second.unit)
    columns = [Column("Time", "time", TIME)]
    columns += [Column(name, name, unit) for name, unit in zip(names, units, strict=True)]
    return ChartTable(columns, found.rows)


def _drawings(request: HttpRequest, found: SeriesComparison, table: ChartTable) -> dict[str, Any]:
    names = [column.label for column in table.columns[1:]]
    y, x = found.pairs
    units = found.second.unit, found.first.unit
    return {
        "names": names,
        "table": table,
        "table_page": table.page(page_number(request.GET.get("rows", ""))),
        "overlay": compare_svg.overlay(list(zip(names, found.values, strict=True)), zone(request)),
        "scatter": compare_svg.scatter(x, y, found.regression, *units),
        "lags": compare_svg.lag_bars(found.lags) if any(lag.has_enough_pairs for lag in found.lags) else "",
        "lag_columns": ("Lag", "Rank correlation", "Pearson", "Pairs"),
        "lag_rows": [
            (
                f"{lag.seconds:,.0f} s",
                f"{lag.correlation.spearman.value:+z.2f}" if lag.correlation.spearman else "",
                f"{lag.correlation.pearson.value:+z.2f}" if lag.correlation.pearson else "",
                f"{lag.correlation.n:,}",
            )
            for lag in found.lags
        ],
    }


entries = [NavigationEntry("Series", "Compare", "compare")]
urlpatterns = [
    path("compare/", page, name="compare"),
    path("compare/pairs.<slug:form>", pairs_file, name="compare-pairs"),
]
