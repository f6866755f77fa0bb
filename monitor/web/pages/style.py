"""Every component and state of the pages, light and dark, for developers of pages and for screenshots."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from monitor.depot.series.staleness import Staleness
from monitor.models.run import State
from monitor.web.charts import stage_shades
from monitor.web.charts.time_range import relative
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from probes import CATEGORIES

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
WAVE = [10 + 3 * math.sin(number / 3) + number % 7 for number in range(400)]
STEPS = ("-2", "-1", "0", "1", "2", "3")
FIELDS = [
    FilterField("site", "Site", "ncsa", suggestions=("ncsa", "sdsc")),
    FilterField(
        "state", "State", "failed", options=(("", "any"), ("failed", "failed"), ("passed", "passed"))
    ),
]


@members_only
def page(request: HttpRequest) -> HttpResponse:
    shades = range(1, stage_shades.SHADES + 1)
    context = {
        "themes": ("light", "dark"),
        "states": [*State.values],
        "freshnesses": [*Staleness],
        "categories": [(name, [*shades]) for name in (*CATEGORIES, stage_shades.OTHER)],
        "lines": [*range(1, 9)],
        "steps": STEPS,
        "now": NOON,
        "minutes_ago": NOON - timedelta(minutes=9),
        "days_ago": NOON - timedelta(days=3),
        "wave": WAVE,
        "fields": FIELDS,
        "order": "-duration",
        "time_range": relative("7d", NOON),
        "crumbs": [("Sites", "#"), ("ncsa", "#"), ("gather-main", "#")],
        "rows": [("2026-03-04", "12.3 s", "9.1 s to 15.2 s"), ("2026-03-03", "11.8 s", "9.0 s to 14.7 s")],
        "columns": ("Day", "Median", "p10 to p90"),
    }
    return render(request, "pages/style.html", context)


urlpatterns = [path("style/", page, name="style")]
