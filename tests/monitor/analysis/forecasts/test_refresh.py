"""States are updated with new inputs, and equal at any time what the depot contains."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta

import msgspec
import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from monitor.analysis.forecasts import pending_changes, update
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.metric_state import MetricUpdate, followed
from monitor.analysis.forecasts.prune import KEPT_OF_OTHERS, keep_newest
from monitor.analysis.forecasts.refresh import (
    REQUESTED_INPUTS,
    record_outcomes,
    refresh,
    refresh_all,
    refresh_requested,
    reset,
    reset_outdated,
)
from monitor.analysis.forecasts.update import use_changes
from monitor.core.compression import pack_state, unpack_state
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import (
    DirtyHour,
    Forecast,
    ForecastPredictor,
    ForecastState,
    Metric,
    Outcome,
    PendingChange,
    Sample,
    Series,
)
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def total(circle: Series, noon: datetime) -> Metric:
    """A series with one metric, and nothing else."""
    ingest(wire.to_json(circle_report(noon)))
    Metric.objects.exclude(name="total.seconds").delete()
    Sample.objects.all().delete()
    DirtyHour.objects.all().delete()
    return Metric.objects.get()


def put(total: Metric, *rows: SampleRow) -> None:
    """Write values as reports do: existing ones stay."""
    write.write(rows)
    mark_dirty.mark({(total.segment.series_id, row.time) for row in rows})


def value(total: Metric, time: datetime, seconds: float, *, known_after: timedelta = MINUTE) -> SampleRow:
    return SampleRow(total.pk, time, time + known_after, seconds, True)


def hourly(total: Metric, noon: datetime, count: int, *, first: int = 0) -> list[SampleRow]:
    return [value(total, noon + n * HOUR, 4.0 + n % 5) for n in range(first, first + count)]


def state(total: Metric) -> tuple[bytes, bytes, int]:
    """Return the complete state: packed, digest, and number of values."""
    row = ForecastState.objects.get(metric=total)
    assert not row.is_behind
    return bytes(row.state or b""), bytes(row.used or b""), row.n


def rebuilt(total: Metric, now: datetime) -> tuple[bytes, bytes, int]:
    reset([total.segment.series_id])
    refresh_all(now)
    return state(total)


def test_a_state_updated_step_by_step_equals_a_rebuilt_one(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon + 6 * HOUR)
    before = state(total)
    put(total, *hourly(total, noon, 1, first=7))
    refresh(noon + 8 * HOUR)
    after = state(total)
    assert (before[2], after[2]) == (5, 6)
    assert rebuilt(total, noon + 8 * HOUR) == after
    assert not PendingChange.objects.exists()


def test_a_late_value_is_used_in_its_place(total: Metric, noon: datetime) -> None:
    first, *rest = hourly(total, noon, 6)
    put(total, *rest)
    refresh(noon + 7 * HOUR)
    put(total, first)
    refresh_all(noon + 7 * HOUR)
    late = state(total)
    assert late[2] == 6
    assert rebuilt(total, noon + 7 * HOUR) == late


def test_a_late_value_resets_the_state_to_what_the_depot_still_has(total: Metric, noon: datetime) -> None:
    for number in range(12):
        put(total, value(total, noon + number * 20 * MINUTE, 4.0 + number % 5))
        refresh(noon + number * 20 * MINUTE + 2 * MINUTE)
    answer = ForecastState.objects.get().forecast
    Sample.objects.filter(time__lt=noon + HOUR).delete()  # by retention
    put(total, value(total, noon + 11 * 20 * MINUTE - 5 * MINUTE, 4.5))
    now = noon + 12 * 20 * MINUTE
    with transaction.atomic():
        use_changes([MetricUpdate(metric, {now - HOUR}) for metric in followed(pk=total.pk)], now)
    row = ForecastState.objects.get()
    assert (row.is_behind, row.state, row.forecast) == (True, None, answer)  # until there is a newer one
    refresh_all(now)
    late = state(total)
    assert late[2] == 10
    assert rebuilt(total, now) == late


def test_a_corrected_value_changes_the_state(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 6))
    refresh(noon + 7 * HOUR)
    before, answer = state(total), issue(total, noon + 7 * HOUR)
    Sample.objects.filter(time=noon + HOUR).update(value=400.0)
    mark_dirty.mark([(total.segment.series_id, noon + HOUR)])
    refresh_all(noon + 7 * HOUR)
    after = state(total)
    assert after != before
    assert issue(total, noon + 7 * HOUR) != answer
    assert rebuilt(total, noon + 7 * HOUR) == after
    Sample.objects.filter(time=noon + HOUR).delete()
    mark_dirty.mark([(total.segment.series_id, noon + HOUR)])
    refresh_all(noon + 7 * HOUR)
    assert state(total)[2] == 5


def test_a_change_of_an_hour_before_the_digest_is_detected(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 60))
    refresh(noon + 61 * HOUR)
    before = state(total)
    mark_dirty.mark([(total.segment.series_id, noon)])  # as by a missed run
    refresh(noon + 61 * HOUR)
    assert state(total) == before
    Sample.objects.filter(time=noon).update(value=400.0)
    mark_dirty.mark([(total.segment.series_id, noon)])
    refresh_all(noon + 61 * HOUR)
    assert state(total) != before


def test_values_deleted_by_retention_stay_in_the_state(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 30))
    refresh(noon + 31 * HOUR)
    before = state(total)
    Sample.objects.filter(time__lt=noon + 12 * HOUR).delete()
    put(total, *hourly(total, noon, 1, first=31))
    refresh(noon + 33 * HOUR)
    assert state(total)[2] == before[2] + 1


def test_a_value_that_becomes_known_in_the_future_is_used_then(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    put(total, value(total, noon + 5 * HOUR, 9.0, known_after=10 * HOUR))  # by a fast clock
    refresh(noon + 6 * HOUR)
    assert state(total)[2] == 5
    with CaptureQueriesContext(connection) as queries:
        assert not refresh(noon + 7 * HOUR)
    assert len(queries) < 11
    refresh(noon + 16 * HOUR)
    assert state(total)[2] == 6
    put(total, value(total, noon + 16 * HOUR, 9.0, known_after=10 * HOUR))
    refresh(noon + 17 * HOUR)
    assert state(total)[2] == 6
    refresh(noon + 27 * HOUR)
    assert state(total)[2] == 7


def test_a_long_history_is_read_part_by_part_and_answered_after_the_last(
    total: Metric, noon: datetime
) -> None:
    many = update.INPUTS_AT_ONCE + 10
    put(total, *(value(total, noon + n * MINUTE, 4.0 + n % 5) for n in range(many)))
    now = noon + (many + 2) * MINUTE
    assert refresh(now, within_seconds=0.0)
    row = ForecastState.objects.get()
    assert (row.is_behind, row.n, row.forecast) == (True, update.INPUTS_AT_ONCE, None)
    refresh_all(now)
    row = ForecastState.objects.get()
    assert (row.is_behind, row.n) == (False, many)
    assert row.forecast is not None
    assert (row.forecast.n, row.forecast.median) == (many, row.median)


def test_states_of_other_method_versions_are_reset(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon + 6 * HOUR)
    state_before = state(total)
    assert reset_outdated() == 0
    of_others = pack_state(b"another!" + unpack_state(state_before[0])[8:])
    ForecastState.objects.update(versions=b"another!", state=of_others)
    assert reset_outdated() == 1
    refresh_all(noon + 6 * HOUR)
    assert state(total) == state_before
    ForecastState.objects.update(state=of_others)
    put(total, *hourly(total, noon, 1, first=6))
    refresh_all(noon + 8 * HOUR)
    assert state(total)[2] == 6


def test_a_rebuild_does_not_issue_the_same_forecast_again(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon + 6 * HOUR)
    rebuilt(total, noon + 7 * HOUR)
    assert Forecast.objects.count() == 1


def test_the_outcome_of_a_job_is_an_input(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon + 6 * HOUR)
    record_outcomes([outcome_of(issue(total, noon + 6 * HOUR), noon + 6 * HOUR)])
    refresh(noon + 8 * HOUR)
    state_before = state(total)
    row = ForecastState.objects.get()
    assert (row.n, row.last_value, row.used_until) == (6, 44.0, noon + 7 * HOUR)
    assert rebuilt(total, noon + 8 * HOUR) == state_before


def test_a_failing_forecaster_does_not_stop_the_others(
    total: Metric, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    other = Metric.objects.create(segment=total.segment, name="stage.compare.seconds", unit="seconds")
    put(total, *hourly(total, noon, 5))
    put(other, *hourly(other, noon, 5))
    refresh(noon + 6 * HOUR)
    state_before = unpack_state(state(total)[0])
    broken = {**msgspec.msgpack.decode(state_before[8:]), "name": "nobody"}
    ForecastState.objects.filter(metric=total).update(
        state=pack_state(state_before[:8] + msgspec.msgpack.encode(broken))
    )
    put(total, *hourly(total, noon, 1, first=7))
    put(other, *hourly(other, noon, 1, first=7))
    refresh(noon + 9 * HOUR)
    assert (state(total)[2], state(other)[2]) == (5, 6)
    assert "updating the forecasts of total.seconds of circle failed" in caplog.text
    assert not refresh(noon + 9 * HOUR)
    put(total, *hourly(total, noon, 1, first=10))
    refresh_all(noon + 12 * HOUR)
    assert state(total)[2] == 7


def test_old_forecasts_are_deleted_unless_they_have_an_outcome(total: Metric, noon: datetime) -> None:
    forecasts = [
        Forecast(
            metric=total, issued_at=noon, method=METHOD, level=0.8, last_time=noon, n=3, mean=1.0, median=1.0,
            lower=0.5, upper=2.0, last_known_at=noon + number * HOUR,
        )
        for number in range(KEPT_OF_OTHERS + 20)
    ]  # fmt: skip
    oldest = Forecast.objects.bulk_create(forecasts)[0]
    outcome_of(oldest, noon)
    keep_newest({total.pk: "stage.compare.seconds"}, noon)
    assert Forecast.objects.count() == KEPT_OF_OTHERS + 2  # of equal age as the last kept, and the oldest
    assert Forecast.objects.filter(pk=oldest.pk).exists()


def test_forecasts_of_given_times_displace_none_of_the_next_run(total: Metric, noon: datetime) -> None:
    row = Forecast(
        metric=total, issued_at=noon, method=METHOD, level=0.8, last_time=noon, n=3, mean=1.0, median=1.0,
        lower=0.5, upper=2.0, last_known_at=noon,
    )  # fmt: skip
    issued = [
        copied(row, last_known_at=noon - HOUR),
        copied(row, issued_at=noon - 2 * DAY, at=noon - 2 * DAY),
    ]
    asked = [copied(row, at=noon + number * MINUTE) for number in range(KEPT_OF_OTHERS + 20)]
    first, old = Forecast.objects.bulk_create([*issued, *asked])[:2]
    keep_newest({total.pk: "stage.compare.seconds"}, noon)
    assert Forecast.objects.filter(pk=first.pk).exists()
    assert not Forecast.objects.filter(pk=old.pk).exists()


def test_a_value_that_no_method_uses_is_no_actual_value(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon + 5 * HOUR)
    put(total, value(total, noon + 6 * HOUR, 1.7e308), value(total, noon + 7 * HOUR, 5.0))
    refresh(noon + 8 * HOUR)
    assert list(Forecast.objects.scored().values_list("truth", flat=True)) == [5.0]


def test_an_outcome_is_a_pending_change_of_the_hour_in_which_it_was_received(
    total: Metric, noon: datetime
) -> None:
    put(total, *hourly(total, noon, 5), value(total, noon + 4 * HOUR + MINUTE, 4.0))
    refresh(noon + 6 * HOUR)
    outcome = outcome_of(issue(total, noon + 6 * HOUR), noon + 4 * HOUR + 30 * MINUTE)
    record_outcomes([outcome])
    (change,) = PendingChange.objects.all()
    assert change.hour == noon + 5 * HOUR


def test_changes_of_a_predictor_without_such_a_metric_are_deleted(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon + 6 * HOUR)
    mine = total.segment.series
    other = Series.objects.create(name="other", probe="circle", suite=mine.suite, reporter=mine.reporter)
    ForecastPredictor.objects.create(metric=total, series=other, name="gone")
    pending_changes.record([(other.pk, noon)])
    refresh(noon + 7 * HOUR)
    assert not PendingChange.objects.exists()


def copied(row: Forecast, **changes: datetime) -> Forecast:
    its = {
        field.attname: getattr(row, field.attname)
        for field in Forecast._meta.concrete_fields
        if field.name != "id"
    }
    return Forecast(**{**its, **changes})


def outcome_of(forecast: Forecast, time: datetime) -> Outcome:
    return Outcome.objects.create(
        forecast=forecast,
        metric=forecast.metric,
        consumer=User.objects.create(username="scheduler"),
        job="1",
        passed=True,
        seconds=44.0,
        started_at=time,
        ended_at=time + MINUTE,
        received_at=time + HOUR,
    )


def test_what_a_client_waits_for_is_read_first(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    other = Metric.objects.create(segment=total.segment, name="total_core.seconds", unit="seconds")
    put(other, *hourly(other, noon, 5))
    now = noon + 6 * HOUR
    assert not refresh_requested(other, now, until=time.monotonic())
    reset([total.segment.series_id])  # both are behind, and the requested one has the higher key
    PendingChange.objects.all().delete()
    assert refresh(now, within_seconds=0.0)
    assert set(ForecastState.objects.filter(is_behind=False)) == {ForecastState.objects.get(metric=other)}
    assert not ForecastState.objects.filter(is_requested=True).exists()  # the client waits no longer


def test_a_request_stops_in_the_middle_of_a_long_history(total: Metric, noon: datetime) -> None:
    many = 3 * REQUESTED_INPUTS
    put(total, *(value(total, noon + n * MINUTE, 4.0 + n % 5) for n in range(many)))
    now = noon + (many + 2) * MINUTE
    assert not refresh_requested(total, now, until=time.monotonic() + 0.001)
    assert ForecastState.objects.get().n < many
    assert refresh_requested(total, now, until=math.inf)
    forecast = ForecastState.objects.get().forecast
    assert forecast is not None
    assert forecast.n == many


@pytest.mark.django_db(transaction=True)
def test_a_request_does_not_wait_for_a_process_that_does_the_same_work(total: Metric, noon: datetime) -> None:
    put(total, *hourly(total, noon, 5))
    refresh(noon, within_seconds=0.0)
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT FROM monitor_forecaststate FOR UPDATE")
        assert cursor.rowcount == 1
        assert not refresh_requested(total, noon + 6 * HOUR, until=time.monotonic() + 0.05)
        cursor.execute("ROLLBACK")
    other.close()
    assert refresh_requested(total, noon + 6 * HOUR, until=math.inf)
