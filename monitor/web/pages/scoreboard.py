"""Forecast accuracy: by method, metric, site, time and consumer, and the gain from probes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone

from forecasting.learning.loss_comparison import gain_interval
from monitor.analysis.forecasts import scoreboard as service
from monitor.analysis.forecasts.calibration import (
    MOST_SERIES,
    CalibrationPoint,
    calibration,
    scores_by_horizon,
    series_records,
    worst_series,
)
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.scoreboard import SPANS, Score, ScoreFilter, ScoreRange
from monitor.analysis.forecasts.scoreboard_csv import PARTS
from monitor.core.units import humanised, unit_of
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.api.scoreboard import csv_table
from monitor.web.charts.score_svg import Comparison, Guide, calibration_curve, lines, ratios
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from monitor.models import Forecast, ForecastPredictor
    from monitor.web.charts.time_range import PageRange

USUAL_RANGE = "30d"
MOST_DAYS = 36_500  # of the range of all days
SPANS_BY_KEY = {span.key: span.days for span in SPANS}


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the scores that the query string selects, so that the address is a permalink."""
    now = timezone.now()
    chosen = time_range(request, now, default=USUAL_RANGE)
    choice = _choice(request, chosen)
    user = request.user
    board = compute(request, "board", lambda: service.scoreboard(user, choice, now))
    last = compute(request, "last", lambda: service.recent_forecasts(user, choice)) or []
    records = (
        compute(request, "series", lambda: series_records(user, choice)) if choice.method == METHOD else None
    ) or []
    points = compute(request, "calibration", lambda: calibration(records)) or []
    times = board.times if board else ()
    context = {
        "choice": choice,
        "time_range": chosen,
        "filters": {**_query(choice), **chosen.query},
        "query": urlencode({**_query(choice), **chosen.query}),
        "names": compute(request, "filters", lambda: service.names(user, choice.span, now)),
        "board": board,
        "last": last,
        "predictors": compute(
            request,
            "predictors",
            lambda: [(each, _interval(each)) for each in service.predictors(user, choice)],
        ),
        "unit": unit_of(choice.metric),
        "calibration": points,
        "calibration_chart": compute(request, "calibration", lambda: _calibration_chart(points)),
        "horizons": compute(request, "horizons", lambda: scores_by_horizon(user, choice)),
        "worst": compute(request, "series", lambda: worst_series(records)),
        "most_series": MOST_SERIES if len(records) == MOST_SERIES else 0,
        "consumers": compute(request, "consumers", lambda: service.consumers(user)),
        "error_chart": compute(request, "times", lambda: _error_chart(times)) if times else None,
        "coverage_chart": compute(request, "times", lambda: _coverage_chart(times)) if times else None,
        "actuals_chart": compute(request, "last", lambda: _actuals_chart(last)),
        "newest": last[0].truth_time if last else None,
        "now": now,
    }
    return render(request, "pages/scoreboard.html", context)


@members_only
@few_at_once
def table(request: HttpRequest, part: str) -> HttpResponse:
    """Download one table of the page as CSV."""
    wanted = next((name for name in PARTS if name == part), None)
    if wanted is None:
        raise Http404(f"there is no table {part!r}")
    chosen = time_range(request, timezone.now(), default=USUAL_RANGE)
    return csv_table(request, _choice(request, chosen), wanted)


def _choice(request: HttpRequest, chosen: PageRange) -> ScoreFilter:
    names = {name: request.GET.get(name, "").replace("\x00", "") for name in ("site", "metric", "method")}
    return ScoreFilter(span=_span(chosen), **{name: value for name, value in names.items() if value})


def _span(chosen: PageRange) -> ScoreRange:
    """Return the UTC days of the range: scores are sums of days."""
    last = (chosen.end - timedelta.resolution).astimezone(UTC).date()
    days = (last - chosen.start.astimezone(UTC).date()).days + 1 if chosen.start else MOST_DAYS
    whole = SPANS_BY_KEY.get(chosen.key)
    return ScoreRange(chosen.key, chosen.label, whole or days, last)


def _interval(predictor: ForecastPredictor) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the gain; None if it is not known."""
    if predictor.gain is None or predictor.p_value is None:
        return None
    return gain_interval(predictor.n, predictor.gain, predictor.p_value)


def _calibration_chart(points: Sequence[CalibrationPoint]) -> SafeString | None:
    if not points:
        return None
    widest = max(abs(point.observed - point.level) for point in points)
    label = f"Calibration: observed shares are at most {100 * widest:.0f} percentage points off; data below"
    return calibration_curve([(point.level, point.observed) for point in points], label=label)


def _query(choice: ScoreFilter) -> dict[str, str]:
    query = {"site": choice.site, "metric": choice.metric, "method": choice.method}
    return {name: value for name, value in query.items() if value}


def _error_chart(times: Sequence[Score]) -> SafeString | None:
    """Draw the error relative to the baseline (last value)."""
    values = [score.scaled_error for score in times]
    present = [value for value in values if value is not None]
    if not present:
        return None
    label = (
        f"Error relative to the last value, {min(present):.2f} to {max(present):.2f}; same data as the table"
    )
    high = max(1.15, min(max(present), 3.0) * 1.05)
    guides = [Guide(1.0, "last value"), Guide(0.0, "no error")]
    return lines([("l-1", values)], guides, low=0.0, high=high, label=label)


def _coverage_chart(times: Sequence[Score]) -> SafeString | None:
    columns = [
        ("l-1", [score.coverage_80 for score in times]),
        ("l-2", [score.coverage_90 for score in times]),
    ]
    present = [value for _, values in columns for value in values if value is not None]
    if not present:
        return None
    guides = [Guide(0.9, "90 % nominal"), Guide(0.8, "80 % nominal")]
    label = "Coverage of the 80 % and 90 % intervals; same data as the table"
    return lines(columns, guides, low=min(0.6, *present), high=1.0, label=label)


def _actuals_chart(last: Sequence[Forecast]) -> SafeString | None:
    """Draw the newest forecasts with their actual values, oldest first."""
    comparisons = [_comparison(forecast) for forecast in reversed(last) if forecast.median > 0]
    if not comparisons:
        return None
    return ratios(comparisons, label="Actual values relative to their forecasts; same data as the CSV")


def _comparison(forecast: Forecast) -> Comparison:
    actual, median = forecast.truth or 0.0, forecast.median
    series, unit = forecast.metric.series.name, forecast.metric.unit
    return Comparison(
        actual=actual / median,
        lower=forecast.lower / median,
        upper=forecast.upper / median,
        url=reverse("series", args=[series]),
        label=f"{series}: {humanised(actual, unit)}, forecast {humanised(median, unit)}",
    )


entries = [NavigationEntry("Forecasts", "Accuracy", "scoreboard")]
urlpatterns = [
    path("forecasts/accuracy/", page, name="scoreboard"),
    path("forecasts/accuracy/<slug:part>.csv", table, name="scoreboard-table"),
]
