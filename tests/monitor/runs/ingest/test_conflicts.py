"""Later reports of a run: an equal one is a duplicate, another one a conflict that is kept beside."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

import pytest

from monitor.depot.retention.apply import apply_retention
from monitor.depot.series.delete import delete_series
from monitor.models import ConflictingReport, RawReport, RetentionCutoff, Run, Series, Suite
from monitor.models.run import State
from monitor.runs.ingest.conflicts import MOST_PER_RUN
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest, ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

DAY = timedelta(days=1)


def bodies(slot: datetime, count: int) -> list[bytes]:
    """Return *count* different reports of one run."""
    return [wire.to_json(circle_report(slot, ring_seconds=4.0 + number)) for number in range(count)]


def test_a_conflict_never_replaces_the_first_report(
    circle: Series, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    first, other = wire.to_json(circle_report(noon)), wire.to_json(failed_circle_report(noon))
    ingest(first)
    with caplog.at_level(logging.WARNING, "monitor.runs.ingest.conflicts"):
        receipt = ingest(other)
    assert (receipt.accepted, receipt.duplicate, receipt.conflict) == (True, False, True)
    assert RawReport.objects.get().body == first
    assert Run.objects.get().state == State.PASSED
    kept = ConflictingReport.objects.get()
    assert (kept.run, kept.slot, kept.reporter, kept.body) == (receipt.run, noon, "home", other)
    assert [
        f"the reporter 'home' sent another report of the run {receipt.run}" in text
        for text in caplog.messages
    ] == [True]


def test_a_conflict_that_is_sent_again_is_kept_and_logged_once(
    circle: Series, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    first, other = bodies(noon, 2)
    with caplog.at_level(logging.WARNING, "monitor.runs.ingest.conflicts"):
        receipts = [ingest(first), *ingest_all([other, first, other]), ingest(other)]
    assert [receipt.conflict for receipt in receipts] == [False, True, False, True, True]
    assert [receipt.duplicate for receipt in receipts] == [False, False, True, False, False]
    assert ConflictingReport.objects.count() == len(caplog.messages) == 1


@pytest.mark.parametrize("is_batch", [True, False])
def test_of_a_run_only_some_conflicts_are_kept(circle: Series, noon: datetime, is_batch: bool) -> None:
    sent = bodies(noon, MOST_PER_RUN + 3)
    receipts: list[ReportReceipt] = ingest_all(sent) if is_batch else [ingest(body) for body in sent]
    assert [receipt.conflict for receipt in receipts] == [False] + [True] * (MOST_PER_RUN + 2)
    assert [receipt.accepted for receipt in receipts] == [True] * (MOST_PER_RUN + 1) + [False] * 2
    assert "10 other reports conflict" in receipts[-1].error
    assert {kept.body for kept in ConflictingReport.objects.all()} == set(sent[1 : MOST_PER_RUN + 1])
    assert ingest(sent[1]).accepted  # kept before


def test_a_report_that_retention_deleted_makes_the_next_one_a_duplicate(
    circle: Series, noon: datetime
) -> None:
    first, other = bodies(noon, 2)
    ingest(first)
    RetentionCutoff.objects.create(series=circle, kind="reports", kept_from=noon + timedelta(hours=1))
    RawReport.objects.all().delete()
    receipt = ingest(other)
    assert (receipt.accepted, receipt.duplicate, receipt.conflict) == (True, True, False)
    assert not ConflictingReport.objects.exists()


def test_a_damaged_first_report_does_not_hide_the_next_one(circle: Series, noon: datetime) -> None:
    first, other = bodies(noon, 2)
    ingest(first)
    RawReport.objects.update(packed=b"damaged")
    assert ingest(other).conflict
    assert ConflictingReport.objects.get().body == other


def test_conflicts_are_deleted_with_their_series(circle: Series, noon: datetime) -> None:
    ingest_all(bodies(noon, 2))
    delete_series(Series.objects.all())
    assert not ConflictingReport.objects.exists()


def test_conflicts_are_deleted_when_the_reports_of_their_series_expire(
    circle: Series, noon: datetime
) -> None:
    for slot in (noon, noon + 2 * DAY):
        ingest_all(bodies(slot, 2))
    Suite.objects.update(keep_reports_days=1)
    apply_retention(noon + 2 * DAY, patience_seconds=0)
    assert [kept.slot for kept in ConflictingReport.objects.all()] == [noon + 2 * DAY]
