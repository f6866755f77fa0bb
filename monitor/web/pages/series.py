"""One series: forecast, history, latest runs and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

import probes
from monitor.analysis.forecasts.series_outlook import NextRunOutlook, outlook
from monitor.core.units import unit_of
from monitor.depot.samples import formats
from monitor.depot.samples.export import export
from monitor.depot.samples.formats.base import UnknownFormat
from monitor.depot.series.segment_history import segment_starts
from monitor.depot.series.segments import SegmentStatus, segment_status
from monitor.depot.series.staleness import Staleness
from monitor.models import Alert, Hold, Metric, Reporter, Series
from monitor.models.hold import HoldKind, Scope
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.run import State
from monitor.models.site import may_manage_somewhere
from monitor.runs.ledger.holds import HoldError, hold_progress
from monitor.runs.ledger.run_now import run_now
from monitor.runs.maintenance.windows import open_for_series
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.charts.annotations import annotations_of
from monitor.web.charts.chart_choice import INTERVALS, LINEAR, SCALES, TOTAL, ChartChoice, read_choice
from monitor.web.charts.chart_table import FILES
from monitor.web.charts.interval_svg import interval_plot
from monitor.web.charts.run_svg import rate_plot, run_plot
from monitor.web.charts.series_chart import RunChart, chart
from monitor.web.charts.thinned_runs import thinned
from monitor.web.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.hold_form import hold_form_context
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range, zone
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.status.series_details import series_runs
from probes.base import ProbeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

    from monitor.models import Run
    from monitor.web.charts.annotations import Annotation
    from monitor.web.charts.interval_chart import IntervalChart
    from monitor.web.charts.time_range import PageRange

LATEST_RUNS = 20
LATEST_CHANGES = 20


@dataclass(frozen=True)
class ParameterValue:
    """One parameter of a probe; *value* is the series' own value or, if *is_default*, the default."""

    name: str
    value: Any
    unit: str
    is_default: bool
    description: str


@members_only
@live
def page(request: HttpRequest, name: str) -> HttpResponse:
    series = _visible(request, name)
    now = timezone.now()
    chosen = time_range(request, now)
    live = _live_context(request, series, now)
    if is_current(request, live["digest"]):
        return HttpResponse(status=204)
    context = {
        **live,
        **(compute(request, "history", lambda: _history(request, series, live["stands"], chosen)) or {}),
        "series": series,
        **_permissions(request, series),
        "now": now,
        "time_range": chosen,
        "freshness": compute(request, "freshness", lambda: _freshness(series, now)),
        "forms": formats.names(),
        "chart_forms": list(FILES),
        "crumbs": [("Series", reverse("series-list"))],
        "chart_csv": _chart_csv(request, name),
    }
    if wants_part(request):
        return render(request, "parts/series.html", context)
    scope = Scope(HoldKind.SERIES, series.name)
    context |= compute(request, "hold-form", lambda: hold_form_context(request, scope, now)) or {}
    context |= compute(request, "configuration", lambda: _configuration(series)) or {}
    return render(request, "pages/series.html", context)


def _history(
    request: HttpRequest, series: Series, stands: SegmentStatus | None, chosen: PageRange
) -> dict[str, Any]:
    """Return the context of the charts, of the table behind them, and of the changes of configuration.

    *stands* is None if the part "segments" failed: the history, which shows it, is then shown as failed, too.
    """
    if stands is None:
        return {}
    metrics = metric_names(series)
    choice = read_choice(request.GET.dict(), metrics)
    history = chart(series, chosen, stands.current, choice)
    drawn = thinned(history) if isinstance(history, RunChart) else history
    events = annotations_of(series, stands.segments, history, chosen.start, chosen.end)
    segment_changes = segment_starts(stands.segments, history.boundaries)[:LATEST_CHANGES]
    return {
        "fields": _fields(choice, metrics),
        "history": history,
        "drawn_runs": len(drawn.runs) if isinstance(drawn, RunChart) else 0,
        **_plots(drawn, choice, events, chosen.end, zone(request)),
        "table": history.table,
        "table_page": history.table.page(page_number(request.GET.get("rows", ""))),
        "events": events,
        "chart_data": _chart_data(drawn, events, choice, chosen, zone(request)),
        "segment_changes": segment_changes,
        "is_change_pending": stands.is_changed
        and not (segment_changes and segment_changes[0].segment == stands.current),
    }


def _chart_data(
    history: RunChart | IntervalChart,
    events: Sequence[Annotation],
    choice: ChartChoice,
    chosen: PageRange,
    reader_zone: tzinfo,
) -> dict[str, Any]:
    """Return the data of the charts, with times of one zone."""
    axis_zone = history.axis_zone(reader_zone)
    return {
        **history.as_json(reader_zone),
        "scale": choice.scale,
        "annotations": [event.as_json(chosen.end, axis_zone) for event in events],
    }


def _plots(
    history: RunChart | IntervalChart,
    choice: ChartChoice,
    events: Sequence[Annotation],
    until: datetime,
    reader_zone: tzinfo,
) -> dict[str, Any]:
    """Return the context of the drawings and their legends."""
    shown = {"has_bars": choice.scale == LINEAR}
    if isinstance(history, RunChart):
        plot = run_plot(history, choice.scale, events, until, reader_zone)
        return {**shown, "plot": plot, "rate_plot": rate_plot(history, reader_zone)}
    return {**shown, "plot": interval_plot(history, choice.scale, events, until, reader_zone)}


def _chart_csv(request: HttpRequest, name: str) -> str:
    """Return the URL of the file with what the chart of *request*, a page or an update of it, shows."""
    query = request.GET.copy()
    query.pop("seen", None)
    return f"{reverse('series-chart', args=[name, 'csv'])}?{query.urlencode()}"


def _permissions(request: HttpRequest, series: Series) -> dict[str, bool]:
    may_run = (
        may_manage_somewhere(request.user)
        and Series.objects.manageable_by(request.user).filter(pk=series.pk).exists()
    )
    has_keys = series.is_reported and may_manage_somewhere(request.user, MANAGE_REPORTERS)
    return {"may_run": may_run, "may_manage_keys": has_keys and may_run}


@members_only
@require_POST
@managers_only()
def queue_run(request: HttpRequest, name: str) -> HttpResponse:
    """Queue a run and show it."""
    series = _visible(request, name)
    check_manageable(series, Series.objects.manageable_by(request.user))
    try:
        run = run_now(series, who=request.user.get_username())
    except HoldError as error:
        messages.error(request, str(error))
        return redirect("series", series.name)
    messages.success(request, f"Run of {series.name} queued. It starts within seconds.")
    return redirect("run", pk=run.pk)


@members_only
@few_at_once
def samples(request: HttpRequest, name: str, form: str) -> StreamingHttpResponse:
    """Download the values of the charts as a file."""
    series = _visible(request, name)
    chosen = time_range(request, timezone.now())
    try:
        file = export(series, form, start=chosen.start, end=chosen.end, label=chosen.file_label)
    except UnknownFormat as error:
        raise Http404(str(error)) from error
    headers = file.headers(timezone.now())
    return StreamingHttpResponse(file.chunks, content_type=file.media_type, headers=headers)


@members_only
@few_at_once
def chart_file(request: HttpRequest, name: str, form: str) -> HttpResponse:
    """Download what the chart shows, no more and no less."""
    series = _visible(request, name)
    if form not in FILES:
        raise Http404(f"expected one of {', '.join(FILES)}, got {form}")
    chosen = time_range(request, timezone.now())
    choice = read_choice(request.GET.dict(), metric_names(series))
    media_type, encode = FILES[form]
    file_name = f"{series.name}-chart-{chosen.file_label}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    return HttpResponse(encode(chart(series, chosen, None, choice).table), media_type, headers=headers)


def metric_names(series: Series) -> list[str]:
    """Return the names of the metrics of *series*, the total first."""
    names = set(Metric.objects.filter(segment__series=series).order_by().values_list("name", flat=True))
    return [TOTAL, *sorted(names - {TOTAL})]


def _fields(choice: ChartChoice, metrics: Sequence[str]) -> list[FilterField]:
    labels = [(name, "total, by stage" if name == TOTAL else name) for name in metrics]
    intervals = [("", "auto"), *((each, each) for each in INTERVALS)]
    return [
        FilterField("metric", "Metric", choice.metric, labels),
        FilterField("interval", "Interval", choice.interval, intervals),
        FilterField("scale", "Axis", choice.scale, [(SCALES[0], "linear"), (SCALES[1], "logarithmic")]),
    ]


def _freshness(series: Series, now: datetime) -> Staleness:
    runs = series_runs([series], now).get(series.pk)
    return runs.freshness if runs else Staleness.IMPORTED if series.is_imported else Staleness.NEVER_SEEN


def _visible(request: HttpRequest, name: str) -> Series:
    visible = Series.objects.visible_to(request.user)
    visible = visible.select_related("suite", "reporter", "leader", "deletion")
    return get_object_or_404(visible, name=name)


def _live_context(request: HttpRequest, series: Series, now: datetime) -> dict[str, Any]:
    """Return the context that changes from run to run, with its digest."""
    holds, open_alerts = Hold.objects.at(now).over(series), Alert.objects.open().filter(series=series)
    ended = series.runs.ended().order_by("-slot")
    latest = compute(request, "latest", lambda: list(ended[:LATEST_RUNS])) or []
    underway, next_run, has_no_agent = compute(request, "next-run", lambda: _next_run(series)) or _NO_RUN
    stands = compute(request, "segments", lambda: segment_status(series))
    forecast_outlook = compute(request, "forecast", lambda: outlook(stands)) if stands else None
    active_holds = compute(request, "holds", lambda: hold_progress(holds)) or []
    alerts = compute(request, "alerts", lambda: list(open_alerts.select_related("rule"))) or []
    maintenance = compute(request, "maintenance", lambda: open_for_series(series, now)) or []
    shown = (
        [(run.pk, run.state, run.stage) for run in (*latest, *underway)],
        next_run and (next_run.pk, next_run.slot <= now),
        forecast_outlook and _seen_of(forecast_outlook),
        [(standing.hold.pk, standing.words) for standing in active_holds],
        [alert.pk for alert in alerts],
        [window.words for window in maintenance],
        has_no_agent,
        stands
        and (stands.current and stands.current.pk, [each.pk for each in stands.segments], stands.changes),
    )
    return {
        "latest": latest,
        "underway": underway,
        "next_run": next_run,
        "has_no_agent": has_no_agent,
        "outlook": forecast_outlook,
        "stands": stands,
        "held": active_holds,
        "alerts": alerts,
        "maintenance": maintenance,
        "digest": digest_of(shown),
    }


class _NextRun(NamedTuple):
    """The runs of a series under way, its next one, and whether its reporter has no assignment yet."""

    underway: Sequence[Run] = ()
    expected: Run | None = None
    has_no_agent: bool = False


_NO_RUN = _NextRun()


def _next_run(series: Series) -> _NextRun:
    return _NextRun(
        list(series.runs.in_flight().order_by("slot")),
        series.runs.filter(state=State.EXPECTED).order_by("slot").first(),
        series.enabled and Reporter.objects.unassigned().filter(pk=series.reporter_id).exists(),
    )


def _seen_of(outlook: NextRunOutlook) -> tuple[object, ...]:
    """Return what the page shows of *outlook*, without ages."""
    forecast, success = outlook.forecast, outlook.success
    return (
        forecast and forecast.pk,
        outlook.record,
        success and (success.n, success.probability),
    )


def _summary_without_probe(series: Series) -> str:
    if series.is_reported:
        return "Programs outside of gridcast run it and report its runs."
    return "Imported history" if series.is_imported else "This probe is not installed."


def _configuration(series: Series) -> dict[str, Any]:
    """Return probe, roles and parameters of *series*, with descriptions if this server has the probe."""
    bindings: dict[str, list[Any]] = {}
    for binding in series.bindings.select_related("resource__site").order_by("role", "position"):
        bindings.setdefault(binding.role, []).append(binding.resource)
    try:
        probe = probes.load(series.probe)
    except ProbeError:
        roles = [(role, "", resources) for role, resources in bindings.items()]
        summary = _summary_without_probe(series)
        parameters = [
            ParameterValue(name, value, unit_of(name), False, "")
            for name, value in sorted(series.parameters.items())
        ]
        return {"summary": summary, "roles": roles, "parameters": parameters}
    roles = [(name, role.description, bindings.get(name, [])) for name, role in probe.roles.items()]
    parameters = [
        ParameterValue(
            name,
            series.parameters.get(name, parameter.default),
            unit_of(name),
            name not in series.parameters,
            parameter.description,
        )
        for name, parameter in probe.parameters.items()
    ]
    return {"summary": probe.summary, "roles": roles, "parameters": parameters}


urlpatterns = [
    path("series/<slug:name>/", page, name="series"),
    path("series/<slug:name>/run-now/", queue_run, name="run-now"),
    path("series/<slug:name>/samples.<slug:form>", samples, name="samples"),
    path("series/<slug:name>/chart.<slug:form>", chart_file, name="series-chart"),
]
