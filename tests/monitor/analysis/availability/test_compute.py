"""The availability of a site counts its own failures, in the time that its results and windows cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pytest_django import DjangoAssertNumQueries

from monitor.analysis.availability.compute import WantedDay, compute
from monitor.analysis.availability.timelines import StatusSeconds
from monitor.analysis.availability.versions import all_versions
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Incident, MaintenanceWindow, Run, Series, Site
from monitor.models.incident import MONITOR
from monitor.models.run import State
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.analysis.availability.computing import computed, seconds_of
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
    seconds = seconds_of(site, MIDNIGHT.date(), until)
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


def test_failures_while_the_monitor_is_suspected_say_nothing(circle: Series) -> None:
    hourly(".xxxx..")
    since, until = MIDNIGHT + 2 * HOUR, MIDNIGHT + 4 * HOUR
    Incident.objects.create(kind=MONITOR, since=since, opened_at=since, resolved_at=until)
    # Down from 1 until the second slot after it, then unknown; the failure at 4 counts again.
    assert hours("site-of-there", MIDNIGHT + 7 * HOUR) == (3, 1, 0, 3)


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
    Site.objects.create(name="nowhere")
    (day,) = computed("nowhere", NOON.date(), NOON)
    assert (day.seconds.availability, day.services) == (None, {})
    assert day.seconds.unknown == 12 * 3600


def login(circle: Series, outcomes: str, *, probe: str = "noop", name: str = "login") -> Series:
    """Create a series at the site of "there" with a run an hour from midnight on, as in ``hourly``."""
    series = Series.objects.create(
        name=name, probe=probe, suite=circle.suite, reporter=circle.reporter, schedule="@hourly"
    )
    resource = circle.bindings.get(resource__name="there").resource
    series.bindings.create(role="target", position=0, resource=resource)
    for number, outcome in enumerate(outcomes):
        slot = MIDNIGHT + number * HOUR
        Run.objects.create(
            id=wire.run_id(name, slot),
            series=series,
            slot=slot,
            due_at=slot,
            state=State.PASSED if outcome == "." else State.FAILED,
            failed_resource="" if outcome == "." else "there",
        )
    return series


def test_every_probe_is_needed_and_of_its_series_one(circle: Series) -> None:
    hourly("......")
    login(circle, "...xxx")
    login(circle, "x..xx.", name="login-2")
    (day,) = computed("site-of-there", MIDNIGHT.date(), MIDNIGHT + 6 * HOUR)
    assert day.seconds == StatusSeconds(up=4 * 3600, unknown=0, scheduled=0, down=2 * 3600)
    assert {name: seconds.down / 3600 for name, seconds in day.services.items()} == {"circle": 0, "noop": 2}


def test_a_probe_of_which_nothing_is_known_all_day_does_not_count(circle: Series) -> None:
    hourly("......")
    login(circle, "")
    assert hours("site-of-there", MIDNIGHT + 6 * HOUR) == (6, 0, 0, 0)


def test_a_daily_result_is_valid_for_two_days_and_a_single_one_for_a_day(circle: Series) -> None:
    days = [MIDNIGHT + number * 24 * HOUR for number in (0, 1, 2, 8)]
    ingested([circle_report(day) for day in days])
    shown = computed("site-of-here", MIDNIGHT.date(), MIDNIGHT + 10 * 24 * HOUR)
    assert [day.seconds.up // 3600 for day in shown[:10]] == [24, 24, 24, 0, 0, 0, 0, 0, 24, 0]


def test_the_days_do_not_depend_on_which_others_are_computed(circle: Series) -> None:
    hourly("..xx......x.m.x..." * 8)
    end = MIDNIGHT + 6 * 24 * HOUR
    together = computed("site-of-there", MIDNIGHT.date(), end)
    apart = [
        day
        for number in range(6)
        for day in computed("site-of-there", (MIDNIGHT + number * 24 * HOUR).date(), end)
        if day.wanted.day == (MIDNIGHT + number * 24 * HOUR).date()
    ]
    assert [day.seconds for day in apart] == [day.seconds for day in together[:6]]
    assert sum(day.seconds.down for day in apart) > 0


def test_the_number_of_statements_does_not_depend_on_sites_and_days(
    circle: Series, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    hourly("..xx..")
    versions = all_versions()
    wanted = [
        WantedDay(site.pk, (MIDNIGHT - number * 24 * HOUR).date(), versions.find(site.pk, MIDNIGHT.date()))
        for site in Site.objects.all()
        for number in range(3)
    ]
    with django_assert_num_queries(
        6
    ):  # sites twice, bindings, series, suspicions, windows; slots are not counted
        assert len(compute(wanted, NOON)) == 6


def test_at_midnight_nothing_of_the_new_day_is_counted(circle: Series) -> None:
    (day,) = computed("site-of-here", MIDNIGHT.date(), MIDNIGHT)
    assert day.seconds == StatusSeconds(0, 0, 0, 0)
