"""A claimed run starts once; its assignment has the expected durations."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.refresh import refresh_all
from monitor.models import Metric, Resource, Run, Series
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.start_runs import start_runs
from reporters import report as wire
from reporters.config import Assignment
from tests.monitor.builders import circle_report
from tests.monitor.runs.fleet.agents import remote_reporter

MINUTE = timedelta(minutes=1)


def feed(noon: datetime, *ring_seconds: float) -> None:
    for number, seconds in enumerate(ring_seconds):
        ingest(wire.to_json(circle_report(noon + number * MINUTE, ring_seconds=seconds)))


def assigned(series: Series, now: datetime) -> Assignment:
    """Return the assignment of a run of *series* that starts at *now*."""
    run_now(series, who="ada", now=now)
    (claim,) = claim_due(now)
    (started,) = start_runs([claim.run_id], now)
    return started.assignment


def test_a_run_starts_once_and_only_if_it_is_claimed(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    assert start_runs([run.pk], noon) == []  # not claimed
    claim_due(noon)
    (started,) = start_runs([run.pk], noon)
    assert (started.run_id, started.attempt) == (run.pk, 1)
    assert start_runs([run.pk], noon) == []
    run.refresh_from_db()
    assert (run.state, run.started_at) == (State.RUNNING, noon)


def test_a_run_whose_series_moved_to_an_agent_does_not_start(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    (claim,) = claim_due(noon)
    home = circle.reporter
    Series.objects.update(reporter=remote_reporter("ncsa"))
    assert start_runs([claim.run_id], noon) == start_runs([claim.run_id], noon, [claim.slot]) == []
    run.refresh_from_db()
    assert run.state == State.CLAIMED
    Series.objects.update(reporter=home)
    assert [started.run_id for started in start_runs([claim.run_id], noon)] == [run.pk]


def test_the_assignment_has_all_settings_of_the_series(circle: Series, noon: datetime) -> None:
    Series.objects.update(max_load1=4.0, warm_up_runs=2, limit_seconds=60.0)
    Resource.objects.filter(name="there").update(address="data.example.org")
    assignment = assigned(circle, noon)
    identity = (
        assignment.series,
        assignment.slot,
        assignment.reporter,
        assignment.probe,
        assignment.parameters,
    )
    assert identity == ("circle", noon, "home", "circle", circle.parameters)
    assert (assignment.max_load1, assignment.warm_up_runs, assignment.limit_seconds) == (4.0, 2, 60.0)
    assert assignment.state_directory == str(settings.VAR_DIR / "series")
    assert assignment.bindings == {"ring": ["here", "there"]}
    config, row = assignment.resources["there"], Resource.objects.get(name="there")
    assert (config.site, config.scratch, config.address) == (row.site.name, row.scratch, "data.example.org")
    assert (config.shell, config.transfer, config.batch) == (row.shell, row.transfer, row.batch)


def test_the_expected_duration_is_the_upper_bound_of_the_newest_forecast(
    circle: Series, noon: datetime
) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    refresh_all(noon + 3 * MINUTE)
    feed(noon + 3 * MINUTE, 4.0, 6.0)
    now = noon + 5 * MINUTE
    refresh_all(now)
    expected = assigned(circle, now).expected_seconds
    assert expected["total.seconds"] == issue(Metric.objects.get(name="total.seconds"), now).upper
    assert expected["total.seconds"] > 6.0
    assert "stage.compute.seconds" not in expected  # Circle has no such stage


def test_a_series_without_enough_history_has_no_expected_duration(circle: Series, noon: datetime) -> None:
    feed(noon, 4.0)
    refresh_all(noon + MINUTE)
    assert assigned(circle, noon + MINUTE).expected_seconds == {}


def test_a_series_has_no_expected_duration_after_its_parameters_changed(
    circle: Series, noon: datetime
) -> None:
    feed(noon, 4.0, 5.0, 3.0)
    refresh_all(noon + 3 * MINUTE)
    assert assigned(circle, noon + 3 * MINUTE).expected_seconds != {}
    Run.objects.all().delete()
    Series.objects.update(parameters={"file_bytes": 100_000})
    assert assigned(circle, noon + 4 * MINUTE).expected_seconds == {}
