"""Old forecasts are deleted; states and delivered forecasts stay."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from monitor.analysis.forecasts.deliveries import record_deliveries
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.prune import prune_forecasts
from monitor.analysis.forecasts.refresh import refresh_all, reset
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import (
    CurrentSegment,
    Forecast,
    ForecastDelivery,
    ForecastPredictor,
    ForecastState,
    Metric,
    Segment,
    Series,
)
from tests.monitor.builders import noops

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LATER = 40 * HOUR


@pytest.fixture
def series(db: None, noon: datetime, tmp_path: Path) -> list[Series]:
    return noops(2, tmp_path)


@pytest.fixture
def before(series: list[Series], noon: datetime) -> Metric:
    """Return the total of an earlier segment of the first series; its predictor is the other series."""
    total = segment_total(series[0], 1, noon)
    segment_total(series[0], 2, noon + 20 * HOUR)
    other = segment_total(series[1], 1, noon)
    ForecastPredictor.objects.create(metric=total, series=series[1], name=other.name)
    put(total, *(noon + n * HOUR for n in range(10)))
    put(other, *(noon + n * HOUR for n in range(10)))
    for n in (5, 11):
        refresh_all(noon + n * HOUR)
    return total


def segment_total(series: Series, number: int, began_at: datetime) -> Metric:
    segment = Segment.objects.create(
        series=series, number=number, began_at=began_at, fingerprint=f"{series.name}, {number}"
    )
    CurrentSegment.objects.update_or_create(series=series, defaults={"segment": segment})
    return Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


def put(metric: Metric, *times: datetime) -> None:
    write.write([SampleRow(metric.pk, time, time, 4.0 + time.hour % 5, True) for time in times])
    mark_dirty.mark({(metric.segment.series_id, time) for time in times})


def stored_state(metric: Metric, now: datetime) -> tuple[bytes, bytes, int]:
    refresh_all(now)
    row = ForecastState.objects.get(metric=metric)
    return bytes(row.state or b""), bytes(row.used or b""), row.n


def at(metric: Metric) -> None:
    """Make the segment of *metric* the current one."""
    CurrentSegment.objects.filter(series=metric.segment.series).update(segment=metric.segment)


def test_an_earlier_segment_keeps_its_answer_and_loses_its_predictors(
    before: Metric, series: list[Series], noon: datetime
) -> None:
    at(Metric.objects.get(segment__series=before.segment.series, segment__number=2))
    answer = ForecastState.objects.get(metric=before)
    prune_forecasts(noon + 3 * DAY)
    state = ForecastState.objects.get(metric=before)
    assert (state.forecast, state.record_n) == (answer.forecast, answer.record_n)
    assert state.forecast is not None
    assert not ForecastPredictor.objects.filter(metric=before).exists()
    refresh_all(noon + 3 * DAY)
    issued = Forecast.objects.filter(metric=before).count()
    other = Metric.objects.get(segment__series=series[1])
    put(other, noon + 3 * DAY)
    refresh_all(noon + 3 * DAY + HOUR)
    assert Forecast.objects.filter(metric=before).count() == issued  # a predictor's value changes nothing


def test_an_earlier_segment_keeps_its_predictors_for_two_days(before: Metric, noon: datetime) -> None:
    at(Metric.objects.get(segment__series=before.segment.series, segment__number=2))
    prune_forecasts(noon + 2 * DAY)
    assert ForecastPredictor.objects.filter(metric=before).exists()


def test_a_late_value_of_an_earlier_segment_is_used_as_after_a_rebuild(
    before: Metric, series: list[Series], noon: datetime
) -> None:
    current = Metric.objects.get(segment__series=series[0], segment__number=2)
    at(current)
    prune_forecasts(noon + 3 * DAY)
    put(current, noon + 3 * DAY)
    assert stored_state(before, noon + 3 * DAY + HOUR)[2] == 10
    put(before, noon + 10 * HOUR)
    late = stored_state(before, noon + 3 * DAY + HOUR)
    assert late[2] == 11
    reset([series[0].pk])
    assert stored_state(before, noon + 3 * DAY + HOUR) == late


def test_the_state_of_the_current_segment_is_kept_however_long_ago_it_ran(
    before: Metric, noon: datetime
) -> None:
    at(before)
    prune_forecasts(noon + 300 * DAY)
    assert ForecastState.objects.get(metric=before).state is not None


def test_a_segment_that_a_series_returns_to_has_an_answer_at_once(
    before: Metric, series: list[Series], noon: datetime
) -> None:
    at(Metric.objects.get(segment__series=series[0], segment__number=2))
    prune_forecasts(noon + 3 * DAY)
    at(before)
    now = noon + 3 * DAY + HOUR
    assert issue(before, now).n == 10
    assert issue(before, now, method="nws").last_time == noon + 9 * HOUR
    put(before, now)
    assert stored_state(before, now + HOUR)[2] == 11


def test_forecasts_of_a_past_time_are_deleted_unless_they_were_delivered(
    before: Metric, noon: datetime
) -> None:
    now = noon + 11 * HOUR
    over, given, to_come = (
        issue(before, now, at=time) for time in (now + HOUR, now + 2 * HOUR, now + 90 * DAY)
    )
    record_deliveries([(given.pk, None)], now)
    counted = Forecast.objects.filter(at=None).count()
    prune_forecasts(now + 3 * DAY)
    assert set(Forecast.objects.exclude(at=None)) == {given, to_come}
    prune_forecasts(now + 32 * DAY)
    assert set(Forecast.objects.exclude(at=None)) == {to_come}
    assert not ForecastDelivery.objects.exists()
    assert Forecast.objects.filter(at=None, counts=True).count() == counted
    assert not Forecast.objects.filter(pk=over.pk).exists()
