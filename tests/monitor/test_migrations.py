"""A depot that is in use goes over to a newer scheme, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from monitor.gridfile.define import SeriesDefinition, define
from monitor.ingest.service import ingest
from monitor.models import Blackout, Forecast, Metric, RawReport, Sample, Series, Site
from monitor.series.segments import standing
from reporters import report as wire
from tests.monitor.builders import circle_report

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BEFORE_SEGMENTS = "0007_hold"
BEFORE_MAINTENANCE = "0008_segments"


def back_to(migration: str) -> Any:
    """Take the depot back to *migration*; return its models of then."""
    MigrationExecutor(connection).migrate([("monitor", migration)])
    return MigrationExecutor(connection).loader.project_state([("monitor", migration)]).apps


def to_the_newest() -> None:
    call_command("migrate", verbosity=0)


@pytest.fixture
def at_the_newest_in_the_end(transactional_db: None) -> Iterator[None]:
    yield
    to_the_newest()


@pytest.fixture
def two_segments(circle: Series, at_the_newest_in_the_end: None) -> Series:
    """A depot with two segments: of two runs before a change, and of three after it."""
    for number in range(5):
        report = circle_report(NOON + number * MINUTE, ring_seconds=float(number + 1))
        before = replace(report, parameters={"file_bytes": 5})
        assert ingest(wire.to_json(before if number < 2 else report)).accepted
    for metric in Metric.objects.filter(name="total.seconds"):
        Forecast.objects.create(
            metric=metric, issued_at=NOON, method="nws", level=0.8, last_time=NOON, last_known_at=NOON, n=3,
            mean=1.0, median=1.0, lower=0.5, upper=2.0,
        )  # fmt: skip
    return circle


@pytest.fixture
def without_reports(two_segments: Series) -> Series:
    """Another series, which has values of a run whose report is gone."""
    ring = {"ring": ["here", "there"]}
    define([], [SeriesDefinition("silent", "circle", ring, {"file_bytes": 1000}, "* * * * *")])
    assert ingest(wire.to_json(circle_report(NOON, series="silent"))).accepted
    RawReport.objects.filter(run__series__name="silent").delete()
    return Series.objects.get(name="silent")


def test_going_back_puts_all_segments_together_and_they_become_the_first_as_the_newest_report_said(
    two_segments: Series, without_reports: Series
) -> None:
    old = back_to(BEFORE_SEGMENTS)
    metric = old.get_model("monitor", "Metric").objects.get(name="total.seconds", series=two_segments.pk)
    values = old.get_model("monitor", "Sample").objects.filter(metric=metric).order_by("time")
    assert [row.value for row in values] == [4.0, 5.0, 6.0, 7.0, 8.0]
    assert old.get_model("monitor", "Forecast").objects.count() == 1  # of two from the same knowledge
    to_the_newest()
    segment = two_segments.segments.get()
    assert (segment.number, segment.began_at) == (1, NOON)
    assert segment.parameters == circle_report(NOON).parameters
    assert segment.bindings == {"ring": ["here", "there"]}
    assert segment.fingerprint == segment.identity.fingerprint
    assert Sample.objects.filter(metric__segment=segment).count() == 40
    assert Forecast.objects.get().metric.series == two_segments
    assert standing(two_segments).current == segment
    ingest(wire.to_json(circle_report(NOON + 9 * MINUTE)))
    assert two_segments.segments.count() == 1
    # without any report the first segment is what the series would run
    assert standing(without_reports).current == without_reports.segments.get()


def test_planned_work_gets_a_name_of_its_title_and_what_recurs_is_none_to_a_depot_that_knows_but_one_window(
    circle: Series, at_the_newest_in_the_end: None
) -> None:
    Blackout.objects.create(name="disks", title="Disks", starts_at=NOON, ends_at=NOON + MINUTE)
    weekly = Blackout.objects.create(name="weekly", schedule="0 8 * * tue", duration_seconds=60)
    weekly.sites.set(Site.objects.all())
    old = back_to(BEFORE_MAINTENANCE)
    work, site = old.get_model("monitor", "Blackout"), old.get_model("monitor", "Site").objects.first()
    assert [one.title for one in work.objects.all()] == ["Disks"]
    work.objects.all().delete()
    for title in ("New disks!", "New disks!", "停電", "x" * 200):
        made = work.objects.create(title=title, starts_at=NOON, ends_at=NOON + MINUTE)
        made.sites.add(site)
    to_the_newest()
    found = list(Blackout.objects.order_by("pk"))
    first = found[0].pk
    names = ["new-disks", "new-disks", "maintenance", "x" * 30]
    assert [one.name for one in found] == [f"{name}-{first + i}" for i, name in enumerate(names)]
    assert {(one.starts_at, one.ends_at, one.schedule) for one in found} == {(NOON, NOON + MINUTE, "")}
    assert {site.name for one in found for site in one.sites.all()} == {site.name}
