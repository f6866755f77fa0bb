"""Failures are counted by cause and interval; success rates are given raw and adjusted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.outcomes.counts import (
    RANGES,
    FailureCounts,
    FailureRange,
    RunGroup,
    SuccessRates,
    count_failures,
    outcomes_in,
    runs_at_site,
    success_rates,
)
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import MaintenanceWindow, Run, Series
from monitor.models.run import State
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON

DAY, WEEK = RANGES["24h"], RANGES["7d"]
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("range_", RANGES.values(), ids=RANGES)
def test_the_intervals_of_a_range_end_with_the_one_that_now_lies_in(range_: FailureRange) -> None:
    now = datetime(2026, 3, 1, 13, 37, tzinfo=UTC)
    starts = range_.starts(now)
    assert len(starts) == range_.intervals
    assert starts[-1] <= now < starts[-1] + range_.interval
    assert {later - earlier for earlier, later in pairwise(starts)} == {range_.interval}


def test_intervals_begin_at_whole_hours_and_at_midnight() -> None:
    now = datetime(2026, 3, 1, 13, 37, tzinfo=UTC)
    assert RANGES["24h"].starts(now)[-1] == datetime(2026, 3, 1, 13, tzinfo=UTC)
    assert RANGES["7d"].starts(now)[-1] == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert RANGES["30d"].starts(now)[-1] == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "failed", "excused", "raw", "adjusted"),
    [
        (0, 0, 0, None, None),
        (3, 1, 0, 0.75, 0.75),
        (3, 1, 1, 0.75, 1.0),
        (0, 2, 2, 0.0, None),  # the site had no chance to pass
        (0, 2, 1, 0.0, 0.0),
    ],
)
def test_rates(passed: int, failed: int, excused: int, raw: float | None, adjusted: float | None) -> None:
    rates = SuccessRates(passed, failed, excused)
    assert (rates.raw, rates.adjusted) == (raw, adjusted)


def test_failures_that_are_not_classified_yet_count_against_the_site() -> None:
    counts = [
        RunGroup("", "", State.PASSED, None, in_maintenance=False, runs=5),
        RunGroup("", "", State.FAILED, None, in_maintenance=False, runs=2),
        RunGroup("", "", State.FAILED, 1, in_maintenance=False, runs=3),
        RunGroup("", "", State.TIMED_OUT, 2, in_maintenance=False, runs=4),
    ]
    assert success_rates(counts, {1: True, 2: False}) == SuccessRates(5, 9, 3)


def test_a_failure_during_maintenance_is_excused_once_whatever_its_cause() -> None:
    counts = [
        RunGroup("", "", State.FAILED, None, in_maintenance=True, runs=2),
        RunGroup("", "", State.FAILED, 1, in_maintenance=True, runs=3),
        RunGroup("", "", State.TIMED_OUT, 2, in_maintenance=True, runs=4),
        RunGroup("", "", State.TIMED_OUT, 2, in_maintenance=False, runs=1),
    ]
    assert success_rates(counts, {1: True, 2: False}) == SuccessRates(0, 10, 9)


def ingested(*reports: wire.Report) -> None:
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))


def counted(range_: FailureRange) -> FailureCounts:
    return count_failures(outcomes_in(range_, NOON, User(is_superuser=True)), range_, NOON)


def test_causes_come_with_the_most_frequent_first_and_their_intervals(circle: Series) -> None:
    key = "user@there: Permission denied (publickey)."
    ingested(
        circle_report(NOON - 3 * HOUR),
        failed_circle_report(NOON - 2 * HOUR),
        failed_circle_report(NOON - HOUR, message=key),
        failed_circle_report(NOON - HOUR + timedelta(minutes=1), message=key),
        failed_circle_report(NOON, message=key),
    )
    classify_runs(NOON)
    counts = counted(DAY)
    denied, full = counts.causes
    assert denied.signature is not None
    assert full.signature is not None
    assert (denied.signature.name, denied.runs, denied.series) == ("ssh-authentication-refused", 3, 1)
    assert (denied.first, denied.latest) == (NOON - HOUR, NOON)
    assert denied.by_interval[-3:] == [0, 2, 1]
    assert (full.signature.name, full.by_interval[-3:]) == ("disk-full", [1, 0, 0])
    assert counts.rates == SuccessRates(passed=1, failed=4, excused=3)


def test_runs_outside_the_range_and_runs_that_never_ran_are_not_counted(circle: Series) -> None:
    ingested(failed_circle_report(NOON - timedelta(days=2)))
    Run.objects.create(
        id=wire.run_id("circle", NOON), series=circle, slot=NOON, due_at=NOON, state=State.MISSED
    )
    counts = counted(DAY)
    assert counts.rates == SuccessRates(0, 0, 0)
    assert list(counts.causes) == []
    (cause,) = counted(WEEK).causes
    assert (cause.signature, cause.runs) == (None, 1)  # not classified yet


def test_the_number_of_queries_does_not_depend_on_the_causes(
    circle: Series, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    ingested(*(failed_circle_report(NOON - number * HOUR) for number in range(5)))
    classify_runs(NOON)
    MaintenanceWindow.objects.bulk_create(
        MaintenanceWindow(name=f"w{hour}", starts_at=NOON - hour * HOUR, ends_at=NOON - (hour - 0.5) * HOUR)
        for hour in range(1, 9)
    )
    with django_assert_max_num_queries(9):
        counted(WEEK)


def test_a_site_sees_the_failures_of_series_that_use_it(circle: Series, admin_user: User) -> None:
    ingested(failed_circle_report(NOON))
    for site, runs in (("site-of-here", 1), ("site-of-there", 1), ("elsewhere", 0), ("", 1)):
        assert runs_at_site(admin_user, site).count() == runs
