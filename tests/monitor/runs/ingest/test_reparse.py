"""A newer parser version replaces the samples of stored reports and keeps the old ones as corrections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from django.utils import timezone

from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.score import score
from monitor.depot.retention.apply import apply_retention
from monitor.depot.rollups.statistics import statistics
from monitor.models import Correction, DirtyHour, Forecast, Metric, RawReport, Sample, Series, Suite
from monitor.runs.ingest import extract_metrics
from monitor.runs.ingest.fast_parser import ParsedReport
from monitor.runs.ingest.reparse import MetricParser, ReparseCounts, reparse
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.rollups import roll_all

HOUR = timedelta(hours=1)
RING, COMPARE = "stage.transfer_ring.seconds", "stage.compare.seconds"
METRICS = 8


def doubled(report: ParsedReport) -> Mapping[str, float]:
    """Extract values as another parser version: the ring took twice as long, comparing has no value."""
    values = {name: value for name, value in extract_metrics.values(report).items() if name != COMPARE}
    return {**values, RING: 2 * values[RING]}


NEWER = MetricParser(extract_metrics.VERSION + 1, doubled)
NEWEST = MetricParser(extract_metrics.VERSION + 2, extract_metrics.values)


@pytest.fixture(autouse=True)
def began_at(circle: Series, noon: datetime) -> datetime:
    """Store hourly Circle runs whose rings took 1 to 6 seconds; return the first slot."""
    store(*(circle_report(noon + n * HOUR, ring_seconds=1.0 + n) for n in range(6)))
    return noon


def store(*reports: wire.Report) -> None:
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))


def reparse_all(since: datetime, parser: MetricParser = NEWER, **options: Any) -> ReparseCounts:
    done = ReparseCounts()
    for progress in reparse(since, parser=parser, **options):
        done = progress
    return done


def values(name: str) -> list[float]:
    return list(Sample.objects.filter(metric__name=name).order_by("time").values_list("value", flat=True))


def all_samples() -> list[Any]:
    return list(Sample.objects.order_by("metric_id", "time").values())


def test_samples_become_those_of_the_newer_parser(began_at: datetime) -> None:
    done = reparse_all(began_at)
    assert asdict(done) == asdict(ReparseCounts(read=6, changed=6, removed=6))
    assert values(RING) == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert values(COMPARE) == []
    assert values("stage.init.seconds") == [1.0] * 6
    assert set(RawReport.objects.values_list("parsed_by", flat=True)) == {NEWER.version}


def test_old_values_are_kept_as_corrections_with_the_parser_version(began_at: datetime) -> None:
    before = timezone.now()
    reparse_all(began_at)
    columns = ("old_value", "old_passed", "new_value", "new_passed", "parser_version")
    corrections = Correction.objects.filter(metric__name=RING).order_by("time")
    assert list(corrections.values_list("time", *columns))[:2] == [
        (began_at, 1.0, True, 2.0, True, NEWER.version),
        (began_at + HOUR, 2.0, True, 4.0, True, NEWER.version),
    ]
    (gone,) = Correction.objects.filter(metric__name=COMPARE, time=began_at).values_list(*columns)
    assert gone == (1.0, True, None, None, NEWER.version)
    assert all(before <= correction.corrected_at <= timezone.now() for correction in corrections)


def test_removed_samples_come_back_when_a_parser_extracts_them_again(began_at: datetime) -> None:
    before = all_samples()
    reparse_all(began_at)
    done = reparse_all(began_at, NEWEST)
    assert asdict(done) == asdict(ReparseCounts(read=6, changed=6, added=6))
    assert all_samples() == before


def test_a_parser_with_the_same_values_changes_nothing(began_at: datetime) -> None:
    before = all_samples()
    done = reparse_all(began_at, MetricParser(NEWER.version, extract_metrics.values))
    assert asdict(done) == asdict(ReparseCounts(read=6))
    assert reparse_all(began_at) == ReparseCounts()
    assert all_samples() == before
    assert not Correction.objects.exists()


def test_rollups_are_computed_from_the_new_samples(began_at: datetime) -> None:
    roll_all()
    reparse_all(began_at)
    ring = Metric.objects.get(name=RING)
    assert DirtyHour.objects.filter(hour=began_at).exists()
    for _ in range(2):  # before they are rolled up, and after
        result = statistics(ring, start=began_at, end=began_at + 6 * HOUR)
        assert (result.figures.n, result.figures.mean) == (6, 7.0)
        roll_all()


def test_a_dry_run_counts_changes_and_makes_none(began_at: datetime) -> None:
    before = all_samples()
    done = reparse_all(began_at, dry_run=True)
    assert (done.read, done.changed, done.removed) == (6, 6, 6)
    assert all_samples() == before
    assert set(RawReport.objects.values_list("parsed_by", flat=True)) == {extract_metrics.VERSION}


def test_a_stopped_reparse_continues_with_the_rest(began_at: datetime) -> None:
    list(islice(reparse(began_at, parser=NEWER, batch=2), 2))
    assert values(RING) == [2.0, 4.0, 6.0, 8.0, 5.0, 6.0]
    assert reparse_all(began_at).read == 2
    assert values(RING) == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


def test_only_selected_series_and_slots_are_reparsed(began_at: datetime, circle: Series) -> None:
    assert reparse_all(began_at, series=[circle.pk + 1]) == ReparseCounts()
    assert reparse_all(began_at + 4 * HOUR, series=[circle.pk]).read == 2
    assert values(RING) == [1.0, 2.0, 3.0, 4.0, 10.0, 12.0]


def test_failed_runs_are_reparsed_as_failed(began_at: datetime) -> None:
    store(failed_circle_report(began_at + 9 * HOUR))
    reparse_all(began_at)
    (sample,) = Sample.objects.filter(metric__name=RING, time=began_at + 9 * HOUR)
    assert (sample.value, sample.passed) == (8.0, False)


def test_a_forecast_is_scored_again_with_the_new_value(began_at: datetime) -> None:
    ring = Metric.objects.get(name=RING)
    issue(ring, began_at + 6 * HOUR)
    store(circle_report(began_at + 7 * HOUR, ring_seconds=50.0))
    score(timezone.now())
    reparse_all(began_at)
    assert Forecast.objects.get().truth is None
    score(timezone.now())
    assert Forecast.objects.get().truth == 100.0


@pytest.mark.django_db(transaction=True)
def test_expired_samples_do_not_come_back(began_at: datetime) -> None:
    Suite.objects.update(keep_samples_days=1)
    apply_retention(began_at + timedelta(days=3))
    done = reparse_all(began_at)
    assert asdict(done) == asdict(ReparseCounts(frozen=6))
    assert not Sample.objects.exists()


def test_an_unreadable_report_is_left_unchanged(began_at: datetime) -> None:
    RawReport.objects.filter(slot=began_at).update(packed=b"torn")
    done = reparse_all(began_at)
    assert (done.read, done.unreadable) == (5, 1)
    assert values(RING)[0] == 1.0
