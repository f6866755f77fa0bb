"""Series are deleted while reports of them arrive: whatever was confirmed is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from monitor.analysis.forecasts import states
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.refresh import refresh
from monitor.depot.series.delete import delete_series
from monitor.models import Forecast, ForecastState, Metric, RawReport, Run, Segment, Series
from monitor.models.run import State
from monitor.operations.gridfile.applying import apply
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from reporters.report import run_id
from tests.monitor.builders import circle_report, noops
from tests.monitor.waiters import waiting
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
SECOND = timedelta(seconds=1)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture
def other(circle: Series, tmp_path: Path, noon: datetime) -> Run:
    """A run of another series, whose report can share a batch with one of circle."""
    (series,) = noops(1, tmp_path)
    return expected(series, noon)


def expected(series: Series, slot: datetime) -> Run:
    return Run.objects.create(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot)


def own(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of *work*, run with a connection of its own."""
    try:
        return work(*args, **kwargs)
    finally:
        connection.close()


@contextmanager
def half_stored(
    pool: ThreadPoolExecutor, other: Run, slot: datetime
) -> Iterator[Future[list[ReportReceipt]]]:
    """Run the block while a report of circle at *slot* is written, and its batch waits for a lock."""
    reports = [circle_report(slot), circle_report(other.slot, series=other.series.name)]
    with transaction.atomic():
        list(Run.objects.filter(pk=other.pk, slot=other.slot).select_for_update())
        storing = pool.submit(own, ingest_all, [wire.to_json(report) for report in reports])
        assert eventually(lambda: waiting() == 1)
        yield storing


def test_deleting_a_series_wins_over_a_report_that_is_not_stored_yet(
    pool: ThreadPoolExecutor, circle: Series, other: Run, noon: datetime
) -> None:
    admin = Client()
    admin.force_login(User.objects.create_superuser("ada"))
    with half_stored(pool, other, noon) as storing:
        answer = pool.submit(
            own, admin.post, f"/admin/monitor/series/{circle.pk}/delete/", {"post": "yes"}
        ).result()
        assert answer.status_code == 302
    assert [(receipt.accepted, receipt.error) for receipt in storing.result()] == [
        (False, "there is no series 'circle'"),
        (True, ""),
    ]
    assert [run.series_id for run in Run.objects.all()] == [other.series_id]
    assert not Segment.objects.exclude(series=other.series_id).exists()
    assert RawReport.objects.count() == 1


def locked_first(circle: Series, other: Run, noon: datetime) -> datetime:
    """Return a slot of circle whose expected run is locked before *other*: locks are taken by key."""
    slot = next(
        slot for seconds in range(1000) if run_id("circle", slot := noon + seconds * SECOND) < other.pk
    )
    expected(circle, slot)
    return slot


def test_pruning_yields_to_a_report_and_then_keeps_the_series(
    pool: ThreadPoolExecutor, circle: Series, other: Run, noon: datetime, tmp_path: Path
) -> None:
    nothing = tmp_path / "grid.yaml"
    nothing.write_text("version: 1\n", encoding="utf-8")
    slot = locked_first(circle, other, noon)
    with half_stored(pool, other, slot) as storing:
        pruning = pool.submit(own, apply, str(nothing), prune=True)
        assert eventually(
            lambda: waiting() == 2
        )  # pruning waits for the run, and the report will wait for the series
    assert [receipt.accepted for receipt in storing.result()] == [True, True]
    pruning.result()
    assert set(Series.objects.values_list("name", "enabled")) == {
        ("circle", False),
        (other.series.name, False),
    }
    assert set(Run.objects.values_list("state", flat=True)) == {State.PASSED}


def test_deleting_a_series_yields_to_a_report_and_deletes_it_too(
    pool: ThreadPoolExecutor, circle: Series, other: Run, noon: datetime
) -> None:
    slot = locked_first(circle, other, noon)
    with half_stored(pool, other, slot) as storing:
        removing = pool.submit(own, delete_series, Series.objects.filter(name="circle"))
        assert eventually(lambda: waiting() == 2)
    assert [receipt.accepted for receipt in storing.result()] == [True, True]
    removing.result()
    assert [run.series_id for run in Run.objects.all()] == [other.series_id]


def test_a_report_is_stored_although_its_expected_run_is_deleted_meanwhile(
    pool: ThreadPoolExecutor, circle: Series, noon: datetime
) -> None:
    run = expected(circle, noon)
    with transaction.atomic():
        Run.objects.filter(pk=run.pk, slot=noon).delete()
        storing = pool.submit(own, ingest_all, [wire.to_json(circle_report(noon))])
        assert eventually(lambda: waiting() == 1)
    assert [receipt.accepted for receipt in storing.result()] == [True]
    assert Run.objects.get(slot=noon).state == State.PASSED
    assert RawReport.objects.filter(run=run.pk).count() == 1


@pytest.fixture
def measured(circle: Series, noon: datetime) -> Metric:
    """The total of a series with a few runs and no forecasts yet."""
    ingest_all([wire.to_json(circle_report(noon + number * SECOND)) for number in range(5)])
    return Metric.objects.get(name="total.seconds")


def test_deleting_a_series_waits_for_its_first_forecast_state(
    pool: ThreadPoolExecutor, measured: Metric, noon: datetime
) -> None:
    with transaction.atomic():
        states.lock_or_create(ForecastState, [measured.pk])
        issue(measured, noon + timedelta(hours=1))
        removing = pool.submit(own, delete_series, Series.objects.filter(name="circle"))
        assert eventually(lambda: waiting() == 1)
    removing.result()
    assert not Metric.objects.exists()
    assert not ForecastState.objects.exists()
    assert not Forecast.objects.exists()


@pytest.mark.parametrize("is_followed", [True, False])
def test_updating_forecasts_survives_the_deletion_of_the_series(
    pool: ThreadPoolExecutor, measured: Metric, noon: datetime, is_followed: bool
) -> None:
    if is_followed:
        refresh(noon + timedelta(hours=1))
        ingest_all([wire.to_json(circle_report(noon + 6 * SECOND))])
    with transaction.atomic():
        delete_series(Series.objects.filter(name="circle"))
        forecasting = pool.submit(own, refresh, noon + timedelta(hours=2))
        assert eventually(lambda: waiting() == 1)
    forecasting.result()
    assert not ForecastState.objects.exists()
