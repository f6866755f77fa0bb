"""Failed runs of imported history: where they failed, and what they count against."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from monitor.analysis.outcomes import worker as outcomes
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.depot.rollups import worker as rollups
from monitor.models import FailureHour, OutcomeDay, OutcomeProgress, Run
from monitor.models.run import State
from monitor.runs.imports import formats
from monitor.runs.imports.run import ImportListener, import_history
from monitor.runs.imports.targets import Target
from tests.monitor.analysis.availability.computing import seconds_of
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
OUTAGES = b"""time,end,outcome,why
2026-03-01T00:00:00Z,2026-03-01T01:00:00Z,passed,
2026-03-01T06:00:00Z,2026-03-01T12:00:00Z,failed,No space left on device
2026-03-01T12:00:00Z,2026-03-01T13:00:00Z,passed,
"""
BY_COLUMNS = {"value_columns": "", "end_column": "end", "outcome_column": "outcome", "reason_columns": "why"}
JOBS = b"; UnixStartTime: 1141214400\n1 0 5 60 8 -1 -1 16 3600 -1 0 1 1 -1 1 -1 -1 -1\n"


def imported(kind: str, data: bytes, options: dict[str, str], *, site: str) -> None:
    importer = formats.create_importer(kind, options)
    listener = ImportListener(lambda _: None, lambda _: None)
    import_history(importer, io.BytesIO(data), Target(kind, "old", site=site), "file", listener)
    classify_runs(datetime(2026, 4, 1, tzinfo=UTC))


def test_an_imported_outage_counts_against_its_site() -> None:
    imported("csv", OUTAGES, BY_COLUMNS, site="lanl")
    failed = Run.objects.get(state=State.FAILED)
    assert (failed.stage, failed.failed_resource) == ("compute", "lanl")
    assert failed.signature is not None
    assert seconds_of("lanl", date(2026, 3, 1), datetime(2026, 3, 1, 13, tzinfo=UTC)).down == 6 * 3600


def test_outcomes_of_an_imported_year_are_counted_like_those_of_a_measured_one() -> None:
    now = timezone.now()
    OutcomeProgress.objects.create(since=OutcomeProgress.ALL, until=now - timedelta(hours=1))
    imported("csv", OUTAGES, BY_COLUMNS, site="lanl")
    rollups.gather()
    while outcomes.count(now):
        pass
    (hour,) = FailureHour.objects.all()
    assert (hour.hour, set(hour.names)) == (datetime(2026, 3, 1, 6, tzinfo=UTC), {"compute", "lanl"})
    assert OutcomeDay.objects.filter(day=datetime(2026, 3, 1, tzinfo=UTC)).exists()


def test_a_failed_job_of_a_batch_log_names_its_stage_and_no_site() -> None:
    imported("swf", JOBS, {}, site="hpc2n")
    failed = Run.objects.get(state=State.FAILED)
    assert (failed.stage, failed.failed_resource) == ("compute", "")


def test_a_site_whose_imported_runs_failed_is_not_listed_as_failing() -> None:
    imported("csv", OUTAGES.rpartition(b"2026-03-01T12")[0], BY_COLUMNS, site="lanl")
    assert Run.objects.latest("slot").failed_resource == "lanl"
    browser = Client()
    browser.force_login(builders.user())
    assert "lanl" in (page := browser.get("/sites/").content.decode())
    assert "s-failed" not in page
