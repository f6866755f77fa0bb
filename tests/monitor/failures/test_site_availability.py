"""The availability of a site counts its own failures, in the time that its results and windows cover."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from pytest_django import DjangoAssertNumQueries

from monitor.failures.availability import StatusSeconds
from monitor.failures.classify_runs import classify_runs
from monitor.failures.site_availability import availability_of
from monitor.ingest.service import ingest_all
from monitor.models import MaintenanceWindow, Run, Series, Site
from monitor.models.run import State
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)
MIDNIGHT = NOON - 12 * HOUR


def ingested(reports: Sequence[wire.Report]) -> None:
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    classify_runs(NOON)


def hourly(outcomes: str, *, resource: str = "there", message: str = "No space left on device") -> None:
    """Ingest a run an hour from midnight on: ``.`` passed, ``x`` failed at *resource*, ``m`` was missed."""
    reports = []
    for number, outcome in enumerate(outcomes):
        slot = MIDNIGHT + number * HOUR
        failed = failed_circle_report(slot, message=message)
        assert failed.failure is not None
        if outcome == "m":
            _missed(slot)
        elif outcome == "x":
            reports.append(replace(failed, failure=replace(failed.failure, resource=resource)))
        else:
            reports.append(circle_report(slot))
    ingested(reports)


def _missed(slot: datetime) -> None:
    Run.objects.create(
        id=wire.run_id("circle", slot),
        series=Series.objects.get(),
        slot=slot,
        due_at=slot,
        state=State.MISSED,
    )


def hours(site: str, until: datetime) -> tuple[float, float, float, float]:
    """Return the hours up, unknown, scheduled and down of the day."""
    seconds = availability_of(Site.objects.get(name=site), MIDNIGHT.date(), until).total
    return seconds.up / 3600, seconds.unknown / 3600, seconds.scheduled / 3600, seconds.down / 3600


def test_a_failure_at_the_site_counts_until_the_next_result(circle: Series) -> None:
    hourly("..xx..")
    assert hours("site-of-there", MIDNIGHT + 6 * HOUR) == (4, 0, 0, 2)


def test_a_failure_at_another_site_says_nothing_about_this_one(circle: Series) -> None:
    hourly("..xxxx")
    assert hours("site-of-here", MIDNIGHT + 6 * HOUR) == (3, 3, 0, 0)  # valid until the second slot


def test_a_failure_that_does_not_count_against_a_site_says_nothing(circle: Series) -> None:
    hourly(".x..", message="u@there: Permission denied (publickey).")
    assert hours("site-of-there", MIDNIGHT + 4 * HOUR) == (4, 0, 0, 0)


def test_one_missed_run_is_tolerated_and_after_two_nothing_is_known(circle: Series) -> None:
    hourly(".m..mmm.")
    assert hours("site-of-there", MIDNIGHT + 8 * HOUR) == (6, 2, 0, 0)


def test_maintenance_is_scheduled_downtime(circle: Series) -> None:
    window = MaintenanceWindow.objects.create(
        name="disks", starts_at=MIDNIGHT + HOUR, ends_at=MIDNIGHT + 3 * HOUR
    )
    hourly("..xx..")
    window.sites.add(Site.objects.get(name="site-of-there"))
    assert hours("site-of-there", MIDNIGHT + 6 * HOUR) == (3, 0, 2, 1)
    assert hours("site-of-here", MIDNIGHT + 6 * HOUR) == (5, 1, 0, 0)


def test_a_site_without_results_is_unknown(circle: Series) -> None:
    assert hours("site-of-here", NOON) == (0, 12, 0, 0)
    nowhere = Site.objects.create(name="nowhere")
    shown = availability_of(nowhere, date(2026, 3, 1), NOON)
    assert (shown.total.availability, shown.by_probe) == (None, {})


def test_every_probe_is_needed_and_of_its_series_one(circle: Series) -> None:
    other = Series.objects.create(
        name="noop", probe="noop", suite=circle.suite, reporter=circle.reporter, schedule="@hourly"
    )
    other.bindings.create(
        role="target", position=0, resource=circle.bindings.get(resource__name="there").resource
    )
    hourly("......")
    for number in range(6):
        slot = MIDNIGHT + number * HOUR
        Run.objects.create(
            id=wire.run_id("noop", slot),
            series=other,
            slot=slot,
            due_at=slot,
            state=State.PASSED if number < 3 else State.FAILED,
            failed_resource="" if number < 3 else "there",
        )
    shown = availability_of(Site.objects.get(name="site-of-there"), MIDNIGHT.date(), MIDNIGHT + 6 * HOUR)
    assert shown.total.availability == 0.5
    assert {probe: seconds.availability for probe, seconds in shown.by_probe.items()} == {
        "circle": 1.0,
        "noop": 0.5,
    }


def test_days_add_up_to_the_total(circle: Series, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    hourly("..xx..")
    site = Site.objects.get(name="site-of-there")
    with django_assert_num_queries(3):
        shown = availability_of(site, date(2026, 2, 27), NOON)
    assert [day.day.day for day in shown.days] == [27, 28, 1]
    parts = [day.seconds for day in shown.days]
    assert shown.total == StatusSeconds(
        *(sum(getattr(part, name) for part in parts) for name in ("up", "unknown", "scheduled", "down"))
    )


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("availability", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_each_day_and_the_total(circle: Series) -> None:
    hourly("..xx..")
    lines = printed("site-of-there", "--month", "2026-03").splitlines()
    assert lines[0] == "site-of-there, profile default-1"
    assert len(lines) == 1 + 1 + 31 + 1
    assert lines[2].split() == ["2026-03-01", "92", "%", "92", "%", "22", "h", "2", "h", "-", "-"]
    document = json.loads(printed("site-of-there", "--month", "2026-03", "--json"))
    first = document["days"][0]
    assert (first["up_seconds"], first["down_seconds"]) == (22 * 3600, 2 * 3600)
    assert document["total"]["down_seconds"] == 2 * 3600
    assert document["by_probe"]["circle"]["reliability"] == document["total"]["reliability"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no site 'nowhere'; there are: site-of-here, site-of-there"),
        (["site-of-here", "--month", "March"], "--month: expected a month such as 2026-03, got 'March'"),
        (["site-of-here", "--month", "2026-13"], "--month: expected a month"),
        (["site-of-here", "--month", "9999-01"], "--month: 9999-01 lies in the future"),
    ],
)
def test_an_invalid_argument_is_named(circle: Series, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        printed(*arguments)
