"""Applications use probes of the same resources as predictors."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitor.analysis.forecasts.choose_predictors import choose_predictors
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.prune import keep_newest
from monitor.analysis.forecasts.refresh import refresh, refresh_all
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.depot.series.current_segment import store_current_segments
from monitor.depot.series.segments import local_identity
from monitor.models import (
    CurrentSegment,
    Forecast,
    ForecastPredictor,
    ForecastState,
    Metric,
    Run,
    Segment,
    Series,
    SuccessState,
    Suite,
)
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from reporters.report import run_id

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PATH = {"source": ["alpha"], "compute": ["beta"], "destination": ["gamma"]}


def defined(*series: tuple[str, str, dict[str, list[str]]]) -> dict[str, Metric]:
    """Define these series; return their totals by name."""
    resources = [
        ResourceConfig(name, f"site-of-{name}", f"/{name}") for name in ("alpha", "beta", "gamma", "delta")
    ]
    define(resources, [SeriesDefinition(name, probe, bindings) for name, probe, bindings in series])
    return {series.name: _total(series) for series in Series.objects.all()}


def _total(series: Series) -> Metric:
    bound: dict[str, list[str]] = {}
    for binding in series.bindings.select_related("resource"):
        bound.setdefault(binding.role, []).append(binding.resource.name)
    identity = local_identity(series.probe, series.parameters, bound)
    segment = Segment.objects.create(
        series=series,
        number=1,
        began_at=datetime.fromisoformat("2026-03-01T12:00Z"),
        fingerprint=identity.fingerprint,
    )
    store_current_segments([series.pk])
    return Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


@pytest.fixture
def totals(db: None) -> dict[str, Metric]:
    gather = {"sources": ["alpha"], "compute": ["beta"], "destination": ["gamma"]}
    return defined(
        ("app", "preco", PATH),
        ("same-path", "gather", gather),
        ("one-end", "circle", {"ring": ["alpha", "delta"]}),
        ("elsewhere", "circle", {"ring": ["delta", "gamma"]}),
        ("other-app", "preco", PATH),
    )


def put(metric: Metric, time: datetime, seconds: float) -> None:
    write.write([SampleRow(metric.pk, time, time + MINUTE, seconds, True)])
    mark_dirty.mark([(metric.segment.series_id, time)])


def test_the_nearest_probes_become_predictors_and_applications_do_not(
    totals: dict[str, Metric], noon: datetime
) -> None:
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    chosen = ForecastPredictor.objects.filter(metric=totals["app"]).order_by("pk")
    assert [metric.series.name for metric in chosen] == ["same-path", "elsewhere", "one-end"]
    assert {metric.name for metric in chosen} == {"total.seconds"}
    assert choose_predictors() == 0
    Series.objects.filter(name="elsewhere").delete()
    assert choose_predictors() == 0


def test_a_new_probe_becomes_a_predictor_with_its_first_value(
    totals: dict[str, Metric], noon: datetime
) -> None:
    probe = totals["same-path"]
    Metric.objects.filter(pk=probe.pk).update(name="stage.init.seconds")
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    assert predictors_of(totals["app"]) == {"elsewhere", "one-end"}
    put(Metric.objects.create(segment=probe.segment, name="total.seconds", unit="seconds"), noon, 4.0)
    refresh(noon + HOUR)
    assert predictors_of(totals["app"]) == {"elsewhere", "one-end", "same-path"}


def test_a_segment_that_a_series_returns_to_gets_predictors_added_meanwhile(
    totals: dict[str, Metric], noon: datetime
) -> None:
    app = totals["app"]
    series = app.segment.series
    put(app, noon, 5.0)
    refresh(noon + HOUR)
    ForecastPredictor.objects.all().delete()  # as if there had been none
    CurrentSegment.objects.filter(series=series).update(segment=totals["other-app"].segment)
    put(app, noon + HOUR, 5.0)
    refresh(noon + 2 * HOUR)
    assert predictors_of(app) == {"same-path", "elsewhere", "one-end"}


def test_predictors_are_not_searched_without_new_metrics(totals: dict[str, Metric], noon: datetime) -> None:
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    put(totals["app"], noon + HOUR, 5.0)
    with CaptureQueriesContext(connection) as queries:
        refresh(noon + 2 * HOUR)
    assert not [query["sql"] for query in queries if "monitor_binding" in query["sql"]]


def test_a_predictor_is_visible_to_all_viewers_of_the_application(
    totals: dict[str, Metric], noon: datetime
) -> None:
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    admins, others = Group.objects.create(name="admins"), Group.objects.create(name="others")
    closed = Suite.objects.create(name="closed")
    closed.viewers.set([admins])
    Series.objects.filter(name="same-path").update(suite=closed)
    choose_predictors()
    assert predictors_of(totals["app"]) == {"elsewhere", "one-end"}
    apps = Suite.objects.create(name="apps")
    apps.viewers.set([admins, others])
    Series.objects.filter(name="app").update(suite=apps)
    choose_predictors()
    assert predictors_of(totals["app"]) == {"elsewhere", "one-end"}
    apps.viewers.set([admins])
    choose_predictors()
    assert predictors_of(totals["app"]) == {"elsewhere", "one-end", "same-path"}


def predictors_of(metric: Metric) -> set[str]:
    return {predictor.series.name for predictor in ForecastPredictor.objects.filter(metric=metric)}


def test_a_helpful_predictor_is_named_with_the_forecast(totals: dict[str, Metric], noon: datetime) -> None:
    draw = random.Random(1)
    app, probe = totals["app"], totals["same-path"]
    put(app, noon, 5.0)
    refresh(noon + HOUR)
    choose_predictors()
    for number in range(1, 80):
        weather = draw.lognormvariate(0.0, 0.5)
        put(probe, noon + number * HOUR, 10 * weather)
        put(app, noon + number * HOUR + 2 * MINUTE, 30 * weather * draw.lognormvariate(0.0, 0.05))
        if number % 20 == 0:
            refresh(noon + number * HOUR + 10 * MINUTE)
    put(probe, noon + 80 * HOUR, 100.0)
    refresh_all(noon + 81 * HOUR)
    current = ForecastState.objects.get(metric=app).forecast
    assert current is not None
    assert current.predictor == "same-path/total.seconds"
    assert current.median > 100.0
    predictor = ForecastPredictor.objects.get(metric=app, series__name="same-path")
    assert predictor.is_kept
    assert predictor.gain is not None
    assert predictor.gain > 0.3
    assert Forecast.objects.filter(metric=app).latest("pk") == current


def test_a_value_of_a_predictor_updates_the_time_until_a_run_has_passed(
    totals: dict[str, Metric], noon: datetime
) -> None:
    app, probe = totals["app"], totals["same-path"]
    series = app.segment.series
    ForecastPredictor.objects.create(metric=app, series=probe.segment.series, name=probe.name)
    for number in range(40):
        slot = noon + number * HOUR
        Run.objects.create(
            id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, state="passed",
            started_at=slot, ended_at=slot + MINUTE,
        )  # fmt: skip
        put(probe, slot, 10.0 + number % 7)
        put(app, slot + 2 * MINUTE, 3 * (10.0 + number % 7))
    refresh_all(noon + 40 * HOUR)
    before = SuccessState.objects.get(series=series).expected_seconds
    put(probe, noon + 40 * HOUR, 16.0)
    refresh_all(noon + 41 * HOUR)
    total, after = ForecastState.objects.get(metric=app), SuccessState.objects.get(series=series)
    assert after.expected_seconds != before
    assert total.forecast is not None
    assert (after.expected_seconds or 0.0) >= total.forecast.mean


def test_the_last_forecast_before_an_actual_value_counts(totals: dict[str, Metric], noon: datetime) -> None:
    app, probe = totals["app"], totals["same-path"]
    for number in range(5):
        put(app, noon + number * HOUR, 5.0 + number)
    refresh(noon + 5 * HOUR)
    choose_predictors()
    refresh(noon + 5 * HOUR)
    for minute in (10, 20, 30):
        put(probe, noon + 5 * HOUR + minute * MINUTE, 7.0)
        refresh(noon + 5 * HOUR + (minute + 2) * MINUTE)
    assert Forecast.objects.filter(metric=app, truth=None).count() == 4
    put(app, noon + 6 * HOUR, 8.0)
    refresh(noon + 7 * HOUR)
    assert Forecast.objects.filter(metric=app, truth=8.0).count() == 4
    (counted,) = Forecast.objects.filter(metric=app).scored()
    assert counted.last_known_at == noon + 5 * HOUR + 31 * MINUTE
    assert ForecastState.objects.get(metric=app).record_n == 1
    keep_newest({app.pk: app.name}, noon + 40 * HOUR)
    assert Forecast.objects.filter(metric=app).count() == 2  # that one, and the newest


def test_a_rebuild_chooses_predictors_and_computes_the_same_state(
    totals: dict[str, Metric], noon: datetime
) -> None:
    for number in range(10):
        put(totals["app"], noon + number * HOUR, 5.0 + number % 3)
        put(totals["same-path"], noon + number * HOUR, 5.0 + number % 3)
    refresh_all(noon + 11 * HOUR)
    call_command("forecasts", "rebuild", "app", verbosity=0)
    first = ForecastState.objects.get(metric=totals["app"])
    assert ForecastPredictor.objects.filter(metric=totals["app"]).exists()
    call_command("forecasts", "rebuild", verbosity=0)
    again = ForecastState.objects.get(metric=totals["app"])
    assert (again.state, again.n) == (first.state, 10)
    output = StringIO()
    call_command("forecasts", "status", stdout=output)
    assert "5 metrics are followed, 2 of them have a forecast" in output.getvalue()
    with pytest.raises(CommandError, match="nobody"):
        call_command("forecasts", "rebuild", "nobody")


def test_a_method_asked_for_by_name_uses_the_same_predictors(
    totals: dict[str, Metric], noon: datetime
) -> None:
    weather = random.Random(4)
    for number in range(30):
        slot, slowness = noon + number * HOUR, weather.uniform(2.0, 9.0)
        put(totals["same-path"], slot, slowness)
        put(totals["app"], slot + 10 * MINUTE, 2.0 * slowness)
    put(totals["same-path"], noon + 30 * HOUR, 7.0)
    now = noon + 31 * HOUR
    refresh_all(now)
    choose_predictors()
    refresh_all(now)
    forecast = issue(totals["app"], now, method="lrp", at=now)
    assert (forecast.method, forecast.predictor) == ("lrp", "same-path/total.seconds")
    assert forecast.median == pytest.approx(14.0)
