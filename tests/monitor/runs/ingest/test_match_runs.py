"""A series is reported by its reporter and, for slots up to the change, by its former reporters."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from monitor.models import (
    EndedRun,
    FormerReporter,
    RawReport,
    Reporter,
    Run,
    RunSubscriber,
    Series,
    Transition,
)
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)


@pytest.fixture
def ncsa(circle: Series) -> Reporter:
    return Reporter.objects.create(name="ncsa")


def errors(sender: str | None, *slots: datetime, series: str = "circle") -> list[str]:
    """Send a report of each slot as *sender*; return the errors of the receipts."""
    reports = [circle_report(slot, series=series, reporter=sender or "home") for slot in slots]
    bodies = [wire.to_json(report) for report in reports]
    return [receipt.error for receipt in ingest_all(bodies, senders=[sender] * len(bodies))]


def test_a_reporter_reports_only_series_that_are_assigned_to_it(
    circle: Series, ncsa: Reporter, noon: datetime
) -> None:
    assert errors("ncsa", noon) == [
        "series: no series 'circle' is assigned to the reporter 'ncsa' at this slot"
    ]
    assert not Run.objects.exists()
    assert errors("home", noon) == [""]


def test_an_unknown_series_and_that_of_another_reporter_look_alike(
    circle: Series, ncsa: Reporter, noon: datetime
) -> None:
    (of_another,), (unknown,) = errors("ncsa", noon), errors("ncsa", noon, series="nobody-knows")
    assert of_another.replace("circle", "nobody-knows") == unknown


def test_a_report_in_the_name_of_another_reporter_is_refused(circle: Series, noon: datetime) -> None:
    (receipt,) = ingest_all([wire.to_json(circle_report(noon))], senders=["ncsa"])
    assert receipt.error == "reporter: expected 'ncsa', the reporter of the credential, got 'home'"
    assert not Run.objects.exists()


def test_late_reports_of_a_former_reporter_arrive_but_no_later_ones(
    circle: Series, ncsa: Reporter, noon: datetime
) -> None:
    Series.objects.update(reporter=ncsa)
    after = timezone.now() + MINUTE
    late, too_late = errors("home", noon, after)
    assert late == ""
    assert too_late == "series: no series 'circle' is assigned to the reporter 'home' at this slot"
    assert errors("ncsa", noon + MINUTE, after) == ["", ""]
    assert {run.slot for run in Run.objects.all()} == {noon, noon + MINUTE, after}


def test_the_last_change_of_a_reporter_counts(circle: Series, ncsa: Reporter, noon: datetime) -> None:
    home = circle.reporter
    for reporter in (ncsa, home, ncsa):
        Series.objects.update(reporter=reporter)
    Series.objects.update(schedule="*/5 * * * *")  # no change of the reporter
    assert {(each.reporter.name, each.until < timezone.now()) for each in FormerReporter.objects.all()} == {
        ("home", True),
        ("ncsa", True),
    }
    (between,) = FormerReporter.objects.filter(reporter=ncsa)
    (last,) = FormerReporter.objects.filter(reporter=home)
    assert between.until < last.until
    assert errors("home", last.until - timedelta(microseconds=1)) == [""]


def test_a_former_reporter_reports_a_series_under_its_earlier_name(
    circle: Series, ncsa: Reporter, noon: datetime
) -> None:
    run = Run.objects.create(pk=wire.run_id("circle", noon), series=circle, slot=noon, due_at=noon)
    Series.objects.update(reporter=ncsa, name="ring")
    assert errors("home", noon) == [""]
    run.refresh_from_db()
    assert run.state == "passed"


def test_trusted_code_reports_every_series(circle: Series, ncsa: Reporter, noon: datetime) -> None:
    Series.objects.update(reporter=ncsa)
    FormerReporter.objects.all().delete()
    assert errors(None, noon) == [""]


def test_the_ledger_records_how_a_run_that_it_lacked_ended(circle: Series, noon: datetime) -> None:
    assert errors("home", noon) == [""]
    run = Run.objects.get()
    transition = Transition.objects.get(run=run)
    assert (run.state, run.cause, run.trigger) == ("passed", "reported by home", "reporter")
    assert (transition.source, transition.target, transition.cause) == ("expected", "passed", run.cause)


def test_the_first_of_two_reports_of_a_run_ends_it(circle: Series, noon: datetime) -> None:
    bodies = [wire.to_json(report) for report in (failed_circle_report(noon), circle_report(noon))]
    assert [receipt.conflict for receipt in ingest_all(bodies)] == [False, True]
    assert Run.objects.get().state == RawReport.objects.get().parsed().outcome == "failed"


def test_subscribers_get_reported_runs_but_no_imported_ones(circle: Series, noon: datetime) -> None:
    RunSubscriber.objects.create(name="test")
    reported, imported = (wire.to_json(circle_report(slot)) for slot in (noon, noon + MINUTE))
    ingest_all([reported])
    ingest_all([imported], trigger="import: runs of a file")
    assert [ended.slot for ended in EndedRun.objects.filter(subscriber="test")] == [noon]
