"""What a reporter is told of how long its run is expected to take."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.models import Metric, Series
from monitor.services.expectation import expected_seconds
from monitor.services.forecast import issue
from monitor.services.ingest import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report

MINUTE = timedelta(minutes=1)


def feed(noon: datetime, *ring_seconds: float) -> None:
    for number, seconds in enumerate(ring_seconds):
        ingest(wire.to_json(circle_report(noon + number * MINUTE, ring_seconds=seconds)))


def test_the_upper_bound_of_the_forecast_is_expected(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0, 5.0, 3.0, 4.0, 6.0)
    now = noon + 5 * MINUTE
    expected = expected_seconds(circle, now)
    assert expected["total.seconds"] == issue(Metric.objects.get(name="total.seconds"), now).upper
    assert expected["total.seconds"] > 6.0
    assert "stage.compute.seconds" not in expected  # Circle has no such stage


def test_nothing_is_expected_of_a_series_without_a_past(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0)
    assert expected_seconds(circle, noon + MINUTE) == {}


def test_the_assignment_tells_it_and_the_addresses(circle: Series, noon: datetime) -> None:
    resource = circle.bindings.first().resource  # type: ignore[union-attr]
    resource.address = "data.example.org"
    resource.save()
    assignment = circle.assignment(noon, {"total.seconds": 9.0})
    assert assignment.expected_seconds == {"total.seconds": 9.0}
    assert assignment.resources[resource.name].address == "data.example.org"
