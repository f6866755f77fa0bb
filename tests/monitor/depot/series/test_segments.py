"""A series that changes keeps its name and begins a new segment: histories are never mixed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from monitor.analysis.forecasts.refresh import refresh_all
from monitor.analysis.forecasts.series_outlook import outlook
from monitor.depot.samples.export import values
from monitor.depot.samples.read import history, of_run
from monitor.depot.series.segments import current_segments, segment_status
from monitor.models import (
    Binding,
    Forecast,
    Metric,
    RawReport,
    Reporter,
    Resource,
    Run,
    Sample,
    Segment,
    Series,
)
from monitor.models.segment import SegmentIdentity
from monitor.runs.ingest.service import ingest, ingest_all
from probes.base import checked_parameters
from reporters import report as wire
from tests.monitor.builders import CIRCLE, circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)
HERE, THERE = "here", "there"


def parameters(**given: Any) -> dict[str, Any]:
    return checked_parameters(CIRCLE, {"file_bytes": 1000, **given})


LARGER = parameters(file_bytes=100_000)


def deliver(slot: datetime, **changes: Any) -> None:
    receipt = ingest(wire.to_json(circle_report(slot, **changes)))
    assert receipt.accepted, receipt.error


def feed(start: datetime, *ring_seconds: float, **changes: Any) -> None:
    """Ingest reports of runs a minute apart, from *start* on."""
    for number, seconds in enumerate(ring_seconds):
        deliver(start + number * MINUTE, ring_seconds=seconds, **changes)


def totals(segment: int) -> list[float]:
    return [
        point.value for point in history(Metric.objects.get(segment__number=segment, name="total.seconds"))
    ]


def rebind(series: Series, *names: str) -> None:
    series.bindings.all().delete()
    for position, name in enumerate(names):
        resource = Resource.objects.get(name=name)
        Binding.objects.create(series=series, role="ring", position=position, resource=resource)


def test_the_first_run_that_measures_something_begins_the_first_segment(
    circle: Series, noon: datetime
) -> None:
    deliver(noon)
    segment = Segment.objects.get()
    assert (segment.number, segment.began_at) == (1, noon)
    assert (segment.probe, segment.probe_version) == ("circle", CIRCLE.version)
    assert (segment.parameters, segment.bindings) == (parameters(), {"ring": [HERE, THERE]})
    assert segment_status(circle).current == segment


def test_a_run_that_measured_nothing_begins_no_segment(circle: Series, noon: datetime) -> None:
    deliver(noon, outcome="broken", stages=[], metrics=[], parameters={"file_bites": 1})
    assert not Segment.objects.exists()


def test_other_parameters_begin_a_segment_whose_values_are_its_own(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0)
    feed(noon + 2 * MINUTE, 40.0, 50.0, parameters=LARGER)
    assert totals(1) == [7.0, 8.0]
    assert totals(2) == [43.0, 53.0]


def test_another_version_of_the_probe_begins_a_segment(circle: Series, noon: datetime) -> None:
    deliver(noon)
    deliver(noon + MINUTE, probe=wire.ProbeIdentity("circle", "99.0", "0" * 64))
    assert [segment.probe_version for segment in Segment.objects.all()] == [CIRCLE.version, "99.0"]


def test_a_late_report_goes_to_the_segment_it_belongs_to(circle: Series, noon: datetime) -> None:
    deliver(noon + MINUTE)
    feed(noon + 3 * MINUTE, 40.0, parameters=LARGER)
    feed(noon, 1.0)
    feed(noon + 2 * MINUTE, 2.0)
    assert totals(1) == [4.0, 7.0, 5.0]
    assert totals(2) == [43.0]
    assert Segment.objects.get(number=1).began_at == noon


def test_segments_do_not_depend_on_the_order_of_reports(circle: Series, noon: datetime) -> None:
    feed(noon + MINUTE, 40.0, parameters=LARGER)
    deliver(noon)
    assert [segment.parameters["file_bytes"] for segment in segment_status(circle).segments] == [
        1000,
        100_000,
    ]


def test_returning_to_earlier_parameters_continues_their_segment(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    feed(noon + 3 * MINUTE, 40.0, parameters=LARGER)
    feed(noon + 4 * MINUTE, 6.0)
    assert totals(1) == [7.0, 8.0, 6.0, 9.0]
    assert Segment.objects.count() == 2
    assert segment_status(circle).current == Segment.objects.get(number=1)


def test_other_bindings_begin_a_segment(circle: Series, noon: datetime) -> None:
    deliver(noon, bindings={"ring": (HERE, THERE)})
    deliver(noon + MINUTE, bindings={"ring": (THERE, HERE)})
    assert [segment.bindings["ring"] for segment in Segment.objects.all()] == [[HERE, THERE], [THERE, HERE]]


def test_a_renamed_series_continues_its_segment(circle: Series, noon: datetime) -> None:
    deliver(noon)
    Series.objects.update(name="ring")
    deliver(noon + MINUTE, series="ring")
    assert len(totals(1)) == 2
    assert segment_status(Series.objects.get()).current == Segment.objects.get()


def test_stating_a_default_value_is_no_change(circle: Series, noon: datetime) -> None:
    deliver(noon)
    Series.objects.update(parameters=parameters())
    assert segment_status(Series.objects.get()).current == Segment.objects.get()


@pytest.mark.django_db(transaction=True)
def test_concurrent_first_reports_create_each_segment_once(circle: Series, noon: datetime) -> None:
    bodies = [
        wire.to_json(circle_report(noon + n * MINUTE, parameters=parameters(file_bytes=1000 + n % 3)))
        for n in range(12)
    ]

    def take(body: bytes) -> bool:
        try:
            return ingest(body).accepted
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(take, bodies))
    assert sorted(Segment.objects.values_list("number", flat=True)) == [1, 2, 3]
    assert [metrics.count() for metrics in (segment.metrics for segment in Segment.objects.all())] == [
        8,
        8,
        8,
    ]
    assert Sample.objects.count() == RawReport.objects.count() * 8 == 96


def test_segments_of_one_batch_are_numbered_by_their_start(circle: Series, noon: datetime) -> None:
    sizes = (9000, 2000, 7000, 3000, 8000, 1000)
    reports = [
        circle_report(noon + number * MINUTE, parameters=parameters(file_bytes=size))
        for number, size in enumerate(sizes)
    ]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports[::-1]]))
    segments = Segment.objects.order_by("number")
    assert [segment.parameters["file_bytes"] for segment in segments] == list(sizes)
    assert [segment.began_at for segment in segments] == [report.slot for report in reports]


def test_a_batch_starts_segments_at_its_earliest_reports(circle: Series, noon: datetime) -> None:
    deliver(noon + 5 * MINUTE)
    late = [
        circle_report(noon + number * MINUTE, parameters=parameters(file_bytes=1000 + 500 * (number % 2)))
        for number in (4, 3, 2, 1)
    ]
    ingest_all([wire.to_json(report) for report in late])
    begins = {segment.parameters["file_bytes"]: segment.began_at for segment in Segment.objects.all()}
    assert begins == {1000: noon + 2 * MINUTE, 1500: noon + MINUTE}


def test_the_metrics_of_a_run_belong_to_its_segment(circle: Series, noon: datetime) -> None:
    deliver(noon)
    ingest(wire.to_json(replace(failed_circle_report(noon + MINUTE), parameters=LARGER)))
    numbers = [{metric.segment.number for metric in of_run(run)} for run in Run.objects.order_by("slot")]
    assert numbers == [{1}, {2}]


def change(circle: Series) -> Series:
    Series.objects.update(parameters={"file_bytes": 100_000})
    circle.refresh_from_db()
    return circle


def test_after_a_change_earlier_runs_are_not_forecast_from(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0, 4.0)
    refresh_all(noon + 5 * MINUTE)
    assert outlook(segment_status(circle)).forecast is not None
    status = segment_status(change(circle))
    assert (status.current, status.is_changed) == (None, True)
    assert outlook(status).forecast is None
    assert outlook(status).abstained.startswith("No run has passed since its parameters changed: ")


def test_too_few_runs_since_a_change_are_counted_from_its_time(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    feed(noon + 3 * MINUTE, 40.0, 41.0, parameters=LARGER)
    status = segment_status(change(circle))
    assert not status.is_changed
    assert [str(change) for change in status.changes] == ["file_bytes 1 kB -> 100 kB"]
    expected = "2 runs have passed since its parameters changed on 2026-03-01 12:03 UTC"
    assert outlook(status).abstained.startswith(expected)


def test_a_forecast_uses_and_is_scored_by_its_own_segment_only(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    refresh_all(noon + 3 * MINUTE)
    feed(noon + 3 * MINUTE, 40.0, 41.0, 42.0, parameters=LARGER)
    refresh_all(noon + 6 * MINUTE)
    old, new = (Forecast.objects.get(metric__name="total.seconds", metric__segment__number=n) for n in (1, 2))
    assert old.truth is None
    assert (old.n, new.n) == (3, 3)
    assert new.mean > 40 > old.upper
    feed(noon + 7 * MINUTE, 3.5)
    feed(noon + 8 * MINUTE, 40.5, parameters=LARGER)
    refresh_all(noon + 9 * MINUTE)
    scored = Forecast.objects.filter(pk__in=[old.pk, new.pk]).order_by("pk")
    assert [forecast.truth for forecast in scored] == [6.5, 43.5]


def test_a_series_that_returns_to_a_segment_has_its_forecast_at_once(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    refresh_all(noon + 3 * MINUTE)
    feed(noon + 3 * MINUTE, 40.0, parameters=LARGER)
    status = segment_status(circle)
    assert status.is_changed
    assert [str(change) for change in status.changes] == ["file_bytes 100 kB -> 1 kB"]
    forecast = outlook(status).forecast
    assert forecast is not None
    assert forecast.n == 3


def test_the_setup_of_a_remote_reporter_is_taken_from_its_newest_passed_run(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(reporter=Reporter.objects.create(name="elsewhere"))
    older = {"probe": wire.ProbeIdentity("circle", "0.9", "0" * 64), "parameters": {"file_bytes": 1000}}
    feed(noon, 4.0, 5.0, **older)
    assert segment_status(circle).current == Segment.objects.get()
    status = segment_status(change(circle))
    assert [str(change) for change in status.changes] == ["file_bytes 1 kB -> 100 kB"]


def test_a_series_whose_probe_was_removed_keeps_its_last_segment(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, probe=wire.ProbeIdentity("removed", "1.0", ""))
    Series.objects.update(probe="removed")
    assert segment_status(Series.objects.get()).current == Segment.objects.get()


def test_the_current_segments_of_several_series_are_found_together(circle: Series, noon: datetime) -> None:
    deliver(noon)
    changed = Series.objects.create(
        suite=circle.suite, name="changed", probe="circle", reporter=circle.reporter
    )
    deliver(noon, series="changed")
    assert current_segments(Series.objects.all()) == {circle.pk: circle.segments.get().pk}
    assert segment_status(changed).is_changed


def test_an_export_names_the_segment_of_each_value(circle: Series, noon: datetime) -> None:
    deliver(noon)
    ingest(wire.to_json(replace(failed_circle_report(noon + MINUTE), parameters=LARGER)))
    exported = {(value.time, value.segment) for value in values(circle, start=None, end=None)}
    assert exported == {(noon, 1), (noon + MINUTE, 2)}


def test_a_fingerprint_does_not_depend_on_order_and_never_changes() -> None:
    identity = SegmentIdentity(
        "gather", "1.0", {"b": 2, "a": 1.5}, {"sources": ["x", "y"], "compute": ("z",)}
    )
    other = SegmentIdentity("gather", "1.0", {"a": 1.5, "b": 2}, {"compute": ["z"], "sources": ("x", "y")})
    assert identity.fingerprint == other.fingerprint
    assert identity.fingerprint == "575ca674c2259e8c8d62bcfa20dcc7571fc7128eb4029a910c23b85fdae62ee2"
    assert (
        replace(identity, bindings={**identity.bindings, "sources": ["y", "x"]}).fingerprint
        != identity.fingerprint
    )
