"""A newer parser reads old reports again: its samples replace the old ones, which are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from django.utils import timezone

from monitor.depot.retention.apply import apply_retention
from monitor.depot.rollups import worker
from monitor.depot.rollups.statistics import statistics
from monitor.forecasts.issue import issue
from monitor.forecasts.score import score
from monitor.ingest import extract_metrics
from monitor.ingest.fast_parser import ParsedReport
from monitor.ingest.reparse import Parser, ReparseCounts, reparse
from monitor.ingest.service import ingest_all
from monitor.models import Correction, DirtyHour, Forecast, Metric, RawReport, Sample, Series, Suite
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

HOUR = timedelta(hours=1)
RING, COMPARE = "stage.transfer_ring.seconds", "stage.compare.seconds"
METRICS = 8


def doubled(report: ParsedReport) -> Mapping[str, float]:
    """Another reading: the ring took twice as long, and comparing is not told."""
    values = {name: value for name, value in extract_metrics.values(report).items() if name != COMPARE}
    return {**values, RING: 2 * values[RING]}


NEWER = Parser(extract_metrics.VERSION + 1, doubled)
NEWEST = Parser(extract_metrics.VERSION + 2, extract_metrics.values)


@pytest.fixture(autouse=True)
def began_at(circle: Series, noon: datetime) -> datetime:
    """Circle at six hours; the ring took 1, 2, ... seconds. When the first began."""
    store(*(circle_report(noon + n * HOUR, ring_seconds=1.0 + n) for n in range(6)))
    return noon


def store(*reports: wire.Report) -> None:
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(one) for one in reports]))


def whole(since: datetime, parser: Parser = NEWER, **options: Any) -> ReparseCounts:
    done = ReparseCounts()
    for progress in reparse(since, parser=parser, **options):
        done = progress
    return done


def values(name: str) -> list[float]:
    return list(Sample.objects.filter(metric__name=name).order_by("time").values_list("value", flat=True))


def everything() -> list[Any]:
    return list(Sample.objects.order_by("metric_id", "time").values())


def test_samples_become_what_the_newer_parser_makes_of_the_reports(began_at: datetime) -> None:
    done = whole(began_at)
    assert asdict(done) == asdict(ReparseCounts(read=6, changed=6, removed=6))
    assert values(RING) == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert values(COMPARE) == []
    assert values("stage.init.seconds") == [1.0] * 6
    assert set(RawReport.objects.values_list("parsed_by", flat=True)) == {NEWER.version}


def test_what_was_is_remembered_with_the_version_that_changed_it(began_at: datetime) -> None:
    before = timezone.now()
    whole(began_at)
    columns = ("old_value", "old_passed", "new_value", "new_passed", "parser_version")
    found = Correction.objects.filter(metric__name=RING).order_by("time")
    assert list(found.values_list("time", *columns))[:2] == [
        (began_at, 1.0, True, 2.0, True, NEWER.version),
        (began_at + HOUR, 2.0, True, 4.0, True, NEWER.version),
    ]
    (gone,) = Correction.objects.filter(metric__name=COMPARE, time=began_at).values_list(*columns)
    assert gone == (1.0, True, None, None, NEWER.version)
    assert all(before <= one.corrected_at <= timezone.now() for one in found)


def test_what_was_removed_comes_back_when_a_parser_tells_it_again(began_at: datetime) -> None:
    before = everything()
    whole(began_at)
    done = whole(began_at, NEWEST)
    assert asdict(done) == asdict(ReparseCounts(read=6, changed=6, added=6))
    assert everything() == before


def test_the_parser_that_has_read_them_changes_nothing(began_at: datetime) -> None:
    before = everything()
    done = whole(began_at, Parser(NEWER.version, extract_metrics.values))
    assert asdict(done) == asdict(ReparseCounts(read=6))
    assert whole(began_at) == ReparseCounts()
    assert everything() == before
    assert not Correction.objects.exists()


def test_rollups_are_made_of_what_is_there_now(began_at: datetime) -> None:
    worker.roll_all()
    whole(began_at)
    ring = Metric.objects.get(name=RING)
    assert DirtyHour.objects.filter(hour=began_at).exists()
    for _ in range(2):  # before they are rolled up, and after
        found = statistics(ring, start=began_at, end=began_at + 6 * HOUR)
        assert (found.figures.n, found.figures.mean) == (6, 7.0)
        worker.roll_all()


def test_a_dry_run_tells_and_changes_nothing(began_at: datetime) -> None:
    before = everything()
    done = whole(began_at, dry_run=True)
    assert (done.read, done.changed, done.removed) == (6, 6, 6)
    assert everything() == before
    assert set(RawReport.objects.values_list("parsed_by", flat=True)) == {extract_metrics.VERSION}


def test_who_is_stopped_in_the_middle_goes_on_with_the_rest(began_at: datetime) -> None:
    list(islice(reparse(began_at, parser=NEWER, at_once=2), 2))
    assert values(RING) == [2.0, 4.0, 6.0, 8.0, 5.0, 6.0]
    assert whole(began_at).read == 2
    assert values(RING) == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


def test_only_what_is_asked_for_is_read_again(began_at: datetime, circle: Series) -> None:
    assert whole(began_at, series=[circle.pk + 1]) == ReparseCounts()
    assert whole(began_at + 4 * HOUR, series=[circle.pk]).read == 2
    assert values(RING) == [1.0, 2.0, 3.0, 4.0, 10.0, 12.0]


def test_runs_that_did_not_pass_are_read_again_as_such(began_at: datetime) -> None:
    store(failed_circle_report(began_at + 9 * HOUR))
    whole(began_at)
    (sample,) = Sample.objects.filter(metric__name=RING, time=began_at + 9 * HOUR)
    assert (sample.value, sample.passed) == (8.0, False)


def test_a_forecast_finds_its_truth_again(began_at: datetime) -> None:
    ring = Metric.objects.get(name=RING)
    issue(ring, began_at + 6 * HOUR)
    store(circle_report(began_at + 7 * HOUR, ring_seconds=50.0))
    score(timezone.now())
    whole(began_at)
    assert Forecast.objects.get().truth is None
    score(timezone.now())
    assert Forecast.objects.get().truth == 100.0


@pytest.mark.django_db(transaction=True)
def test_samples_that_are_gone_for_their_age_do_not_come_back(began_at: datetime) -> None:
    Suite.objects.update(keep_samples_days=1)
    apply_retention(began_at + timedelta(days=3))
    done = whole(began_at)
    assert asdict(done) == asdict(ReparseCounts(frozen=6))
    assert not Sample.objects.exists()


def test_a_report_that_cannot_be_read_any_more_is_left_as_it_is(began_at: datetime) -> None:
    RawReport.objects.filter(slot=began_at).update(packed=b"torn")
    done = whole(began_at)
    assert (done.read, done.unreadable) == (5, 1)
    assert values(RING)[0] == 1.0
