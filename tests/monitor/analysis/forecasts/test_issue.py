"""Forecasts are issued from what is known, stored, and scored when the actual value arrives."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from forecasting.base import Abstained, UnknownMethod
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.refresh import refresh_all
from monitor.analysis.forecasts.score import ForecastRecord, record_of, score
from monitor.models import DayScore, Forecast, ForecastState, Metric, Series
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)


def feed(noon: datetime, *ring_seconds: float, first: int = 0) -> None:
    for number, seconds in enumerate(ring_seconds, start=first):
        ingest(wire.to_json(circle_report(noon + number * MINUTE, ring_seconds=seconds)))


@pytest.fixture
def total(circle: Series, noon: datetime) -> Metric:
    feed(noon, 4.0, 5.0, 3.0, 4.0, 6.0)
    return Metric.objects.get(name="total.seconds")


def test_a_forecast_has_an_interval_around_the_values(total: Metric, noon: datetime) -> None:
    forecast = issue(total, noon + 5 * MINUTE)
    assert forecast.n == 5
    assert 0 <= forecast.lower < forecast.mean < forecast.upper
    assert 6.0 <= forecast.mean <= 9.0


def test_the_same_forecast_from_the_same_values_is_stored_once(total: Metric, noon: datetime) -> None:
    assert issue(total, noon + 5 * MINUTE) == issue(total, noon + 6 * MINUTE)
    assert Forecast.objects.count() == 1


def test_a_forecast_uses_nothing_that_was_not_yet_known(total: Metric, noon: datetime) -> None:
    early = issue(total, noon + 3 * MINUTE + timedelta(seconds=1))
    assert early.n == 3
    assert early.last_time == noon + 2 * MINUTE
    refresh_all(noon + 5 * MINUTE)
    assert issue(total, noon + 5 * MINUTE).n == 5


def test_too_few_values_make_no_forecast(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0)
    with pytest.raises(Abstained, match="2 values"):
        issue(Metric.objects.get(name="total.seconds"), noon + 5 * MINUTE)


def test_series_with_too_few_values_need_no_statement_each(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0)
    refresh_all(noon + 5 * MINUTE)
    with CaptureQueriesContext(connection) as queries:
        refresh_all(noon + 6 * MINUTE)
    assert len(queries) < 11  # dirty hours, pending changes, and states that are behind


def test_failed_runs_are_not_forecast_from(total: Metric, noon: datetime) -> None:
    ingest(wire.to_json(failed_circle_report(noon + 5 * MINUTE)))
    assert issue(total, noon + 6 * MINUTE).n == 5


def test_the_actual_value_is_the_first_run_that_became_known_later(total: Metric, noon: datetime) -> None:
    forecast = issue(total, noon + 5 * MINUTE)
    assert score(timezone.now()) == 0
    feed(noon, 4.5, 9.0, first=6)
    assert score(timezone.now()) == 1
    forecast.refresh_from_db()
    assert (forecast.truth, forecast.truth_time) == (7.5, noon + 6 * MINUTE)
    assert forecast.covered is (forecast.lower <= 7.5 <= forecast.upper)


def test_forecasts_of_the_other_methods_are_scored_too(total: Metric, noon: datetime) -> None:
    forecast = issue(total, noon + 5 * MINUTE)
    others = forecast.others or {}
    assert {"blend", "nws", "local_level"} <= others.keys()
    feed(noon, 4.5, first=6)
    score(timezone.now())
    forecast.refresh_from_db()
    assert forecast.others is None  # after they are scored
    errors = dict(DayScore.objects.filter(site=None).values_list("method", "absolute_error"))
    assert errors == pytest.approx(
        {
            "auto": abs(7.5 - forecast.median),
            "last_value": abs(7.5 - 9.0),
            **{method: abs(7.5 - median) for method, median in others.items()},
        }
    )
    inside = dict(DayScore.objects.filter(site=None).values_list("method", "interval_n"))
    assert {method for method, n in inside.items() if n} == {"auto"}


def test_a_method_asked_for_by_name_counts_once_for_each_actual_value(total: Metric, noon: datetime) -> None:
    issue(total, noon + 5 * MINUTE)
    for method in ("last_value", "nws", "lrp"):
        issue(total, noon + 5 * MINUTE, method=method)
    feed(noon, 4.5, first=6)
    assert score(timezone.now()) == 4
    counted = dict(DayScore.objects.filter(site=None).values_list("method", "n"))
    assert set(counted.values()) == {1}
    inside = DayScore.objects.filter(site=None, interval_n=1).values_list("method", flat=True)
    assert set(inside) == {"auto", "last_value", "nws", "lrp"}


def test_a_late_value_from_before_a_forecast_is_not_its_actual_value(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    feed(noon, 4.0, first=5)
    total = Metric.objects.get(name="total.seconds")
    issue(total, noon + 6 * MINUTE)
    feed(noon, 40.0, first=4)
    assert score(timezone.now()) == 0


def test_the_track_record_counts_what_was_issued_and_scored(total: Metric, noon: datetime) -> None:
    for number in range(5, 15):
        refresh_all(noon + number * MINUTE)
        feed(noon, 4.0 + number % 3, first=number)
    refresh_all(noon + 15 * MINUTE)
    record = record_of(total.pk, METHOD)
    assert record.record_n == 10
    assert record.mean_absolute_error is not None
    assert 0 < record.mean_absolute_error < 2.5
    assert 0 <= (record.coverage(0.8) or 0.0) <= 1


def test_a_metric_without_scored_forecasts_has_no_record(total: Metric) -> None:
    assert record_of(total.pk, METHOD) == ForecastRecord()


def test_a_refresh_scores_and_forecasts_every_duration_with_new_values(total: Metric, noon: datetime) -> None:
    refresh_all(noon + 5 * MINUTE)
    names = set(Forecast.objects.values_list("metric__name", flat=True))
    assert {"total.seconds", "total_essential.seconds", "total_core.seconds", "stage.init.seconds"} < names
    assert "ring.bytes_per_second" not in names  # until it is asked for
    refresh_all(noon + 6 * MINUTE)
    assert Forecast.objects.count() == 7
    feed(noon, 5.0, first=6)
    refresh_all(noon + 8 * MINUTE)
    assert Forecast.objects.count() == 14
    assert Forecast.objects.scored().count() == 7


def test_a_run_that_starts_later_has_a_forecast_of_its_own(total: Metric, noon: datetime) -> None:
    refresh_all(noon + 5 * MINUTE)
    later = issue(total, noon + 5 * MINUTE, at=noon + 600 * MINUTE + timedelta(seconds=31))
    assert later.at == noon + 600 * MINUTE
    assert later == issue(total, noon + 6 * MINUTE, at=noon + 600 * MINUTE)
    feed(noon, 5.0, first=6)
    refresh_all(noon + 8 * MINUTE)
    assert Forecast.objects.filter(truth=None, pk=later.pk).exists()  # another run was forecast
    feed(noon, 6.0, first=601)
    refresh_all(noon + 603 * MINUTE)
    later.refresh_from_db()
    assert later.truth == 9.0
    assert later.truth_time == noon + 601 * MINUTE


def test_another_method_can_be_asked_for_by_name(total: Metric, noon: datetime) -> None:
    refresh_all(noon + 5 * MINUTE)
    assert issue(total, noon + 5 * MINUTE, method="nws").method == "nws"  # a part of the default method
    last = issue(total, noon + 5 * MINUTE, method="last_value")
    assert (last.method, last.mean, last.n) == ("last_value", 9.0, 5)
    with pytest.raises(UnknownMethod):
        issue(total, noon + 5 * MINUTE, method="../nws")


def test_any_metric_is_followed_from_the_first_question_on(total: Metric, noon: datetime) -> None:
    refresh_all(noon + 5 * MINUTE)
    speed = Metric.objects.get(name="ring.bytes_per_second")
    assert not ForecastState.objects.filter(metric=speed).exists()
    assert issue(speed, noon + 5 * MINUTE).n == 5
    feed(noon, 5.0, first=6)
    refresh_all(noon + 8 * MINUTE)
    assert issue(speed, noon + 8 * MINUTE).n == 6
