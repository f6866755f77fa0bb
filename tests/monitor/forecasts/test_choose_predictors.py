"""Applications listen to the probes that use what they use, and say which of them help."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.forecasts.choose_predictors import choose_predictors
from monitor.forecasts.issue import issue
from monitor.forecasts.refresh import refresh, refresh_all
from monitor.forecasts.score import keep_newest
from monitor.gridfile.define import SeriesDefinition, define
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
from monitor.series.current_segment import store_current_segments
from monitor.series.segments import local_identity
from reporters.config import ResourceConfig
from reporters.report import run_id

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PATH = {"source": ["alpha"], "compute": ["beta"], "destination": ["gamma"]}


def defined(*series: tuple[str, str, dict[str, list[str]]]) -> dict[str, Metric]:
    """The totals of these series, by name."""
    resources = [
        ResourceConfig(name, f"site-of-{name}", f"/{name}") for name in ("alpha", "beta", "gamma", "delta")
    ]
    define(resources, [SeriesDefinition(name, probe, bindings) for name, probe, bindings in series])
    return {one.name: _total(one) for one in Series.objects.all()}


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


def test_the_nearest_probes_are_listened_to_and_no_applications(
    totals: dict[str, Metric], noon: datetime
) -> None:
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    chosen = ForecastPredictor.objects.filter(metric=totals["app"]).order_by("pk")
    assert [one.series.name for one in chosen] == ["same-path", "elsewhere", "one-end"]
    assert {one.name for one in chosen} == {"total.seconds"}
    assert choose_predictors() == 0
    Series.objects.filter(name="elsewhere").delete()
    assert choose_predictors() == 0


def test_a_probe_that_is_new_is_listened_to_from_its_first_value_on(
    totals: dict[str, Metric], noon: datetime
) -> None:
    probe = totals["same-path"]
    Metric.objects.filter(pk=probe.pk).update(name="stage.init.seconds")
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    assert listened_to(totals["app"]) == {"elsewhere", "one-end"}
    put(Metric.objects.create(segment=probe.segment, name="total.seconds", unit="seconds"), noon, 4.0)
    refresh(noon + HOUR)
    assert listened_to(totals["app"]) == {"elsewhere", "one-end", "same-path"}


def test_a_segment_that_a_series_goes_back_to_listens_to_what_came_meanwhile(
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
    assert listened_to(app) == {"same-path", "elsewhere", "one-end"}


def test_where_nothing_is_new_nobody_looks_for_predictors(totals: dict[str, Metric], noon: datetime) -> None:
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    put(totals["app"], noon + HOUR, 5.0)
    with CaptureQueriesContext(connection) as asked:
        refresh(noon + 2 * HOUR)
    assert not [one["sql"] for one in asked if "monitor_binding" in one["sql"]]


def test_no_probe_is_listened_to_that_not_all_may_see_who_see_the_application(
    totals: dict[str, Metric], noon: datetime
) -> None:
    put(totals["app"], noon, 5.0)
    refresh(noon + HOUR)
    admins, others = Group.objects.create(name="admins"), Group.objects.create(name="others")
    closed = Suite.objects.create(name="closed")
    closed.viewers.set([admins])
    Series.objects.filter(name="same-path").update(suite=closed)
    choose_predictors()
    assert listened_to(totals["app"]) == {"elsewhere", "one-end"}
    apps = Suite.objects.create(name="apps")
    apps.viewers.set([admins, others])
    Series.objects.filter(name="app").update(suite=apps)
    choose_predictors()
    assert listened_to(totals["app"]) == {"elsewhere", "one-end"}
    apps.viewers.set([admins])
    choose_predictors()
    assert listened_to(totals["app"]) == {"elsewhere", "one-end", "same-path"}


def listened_to(metric: Metric) -> set[str]:
    return {one.series.name for one in ForecastPredictor.objects.filter(metric=metric)}


def test_a_probe_that_tells_what_comes_is_named_with_the_forecast(
    totals: dict[str, Metric], noon: datetime
) -> None:
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
    state = ForecastState.objects.get(metric=app)
    assert state.predictor == "same-path/total.seconds"
    assert state.median is not None
    assert state.median > 100.0
    kept = ForecastPredictor.objects.get(metric=app, series__name="same-path")
    assert kept.is_kept
    assert kept.gain is not None
    assert kept.gain > 0.3
    assert Forecast.objects.filter(metric=app).latest("pk").predictor == state.predictor


def test_what_a_probe_tells_is_in_the_time_until_a_run_has_passed_at_once(
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
    assert (after.expected_seconds or 0.0) >= (total.mean or 0.0)


def test_of_what_is_said_again_before_the_truth_comes_the_last_counts(
    totals: dict[str, Metric], noon: datetime
) -> None:
    app, probe = totals["app"], totals["same-path"]
    for number in range(5):
        put(app, noon + number * HOUR, 5.0 + number)
    refresh(noon + 5 * HOUR)
    choose_predictors()
    refresh(noon + 5 * HOUR)
    for minute in (10, 20, 30):
        put(probe, noon + 5 * HOUR + minute * MINUTE, 7.0)
        refresh(noon + 5 * HOUR + (minute + 2) * MINUTE)
    assert Forecast.objects.filter(metric=app).unscored().count() == 4
    put(app, noon + 6 * HOUR, 8.0)
    refresh(noon + 7 * HOUR)
    assert Forecast.objects.filter(metric=app, truth=8.0).count() == 4
    (counted,) = Forecast.objects.filter(metric=app).scored()
    assert counted.last_known_at == noon + 5 * HOUR + 31 * MINUTE
    assert ForecastState.objects.get(metric=app).record_n == 1
    keep_newest({app.pk: app.name}, noon + 40 * HOUR)
    assert Forecast.objects.filter(metric=app).count() == 2  # that one, and the newest


def test_rebuilding_chooses_predictors_and_comes_to_the_same(
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
    told = StringIO()
    call_command("forecasts", "status", stdout=told)
    assert "5 metrics are followed, 2 of them have a forecast" in told.getvalue()
    with pytest.raises(CommandError, match="nobody"):
        call_command("forecasts", "rebuild", "nobody")


def test_a_method_that_listens_hears_the_same_predictors_when_it_is_asked_for_by_name(
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
    said = issue(totals["app"], now, method="lrp", at=now)
    assert (said.method, said.predictor) == ("lrp", "same-path/total.seconds")
    assert said.median == pytest.approx(14.0)
