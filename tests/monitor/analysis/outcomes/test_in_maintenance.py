"""Failures during planned maintenance of a site of the series are told from others."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User

from monitor.analysis.outcomes.counts import RANGES, SuccessRates, count_failures, outcomes_in
from monitor.analysis.outcomes.in_maintenance import failed_in_maintenance, joined_periods
from monitor.models import MaintenanceWindow, Run, Series, Site
from monitor.runs.ingest.service import ingest_all
from monitor.runs.maintenance.times import OpenWindow
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)


def hour(number: float) -> datetime:
    return NOON + number * HOUR


def hourly(outcomes: str) -> None:
    """Ingest a run an hour from noon on: ``.`` passed, ``f`` failed."""
    reports = [
        circle_report(hour(number)) if outcome == "." else failed_circle_report(hour(number))
        for number, outcome in enumerate(outcomes)
    ]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))


def window(start: float, end: float, sites: Iterable[str] = ()) -> None:
    row = MaintenanceWindow.objects.create(
        name=f"w{MaintenanceWindow.objects.count()}", starts_at=hour(start), ends_at=hour(end)
    )
    row.sites.set([Site.objects.get_or_create(name=name)[0] for name in sites])


# A run an hour from noon on: "ff.ff". A window is (start, end, sites), in hours after noon.
@pytest.mark.parametrize(
    ("windows", "failed_within"),
    [
        ([], []),
        ([(0, 5, [])], [0, 1, 3, 4]),  # everywhere; the passed run is none
        ([(0.5, 1.5, ["site-of-here"])], [1]),
        ([(0.5, 1.5, ["site-of-there"])], [1]),
        ([(0.5, 1.5, ["elsewhere"])], []),
        ([(0.5, 1.5, ["elsewhere", "site-of-here"])], [1]),
        ([(1, 3, [])], [1]),  # its start is within, its end is not
        ([(0, 1, ["site-of-here"]), (1, 2, ["site-of-there"]), (4, 9, [])], [0, 1, 4]),
        ([(0, 1, ["site-of-here"]), (0, 1, ["site-of-there"])], [0]),  # once
        ([(-9, -1, []), (6, 9, [])], []),
    ],
)
def test_failed_runs_in_windows_of_their_sites(
    circle: Series, windows: list[tuple[float, float, list[str]]], failed_within: list[int]
) -> None:
    hourly("ff.ff")
    for each in windows:
        window(*each)
    runs = Run.objects.alias(within=failed_in_maintenance(NOON, hour(5))).filter(within=True)
    assert [(slot - NOON) // HOUR for slot in runs.order_by("slot").values_list("slot", flat=True)] == (
        failed_within
    )


def test_the_adjusted_rate_leaves_them_out(circle: Series) -> None:
    hourly("ff.f")
    window(0.5, 1.5, ["site-of-there"])
    day = RANGES["24h"]
    rates = count_failures(outcomes_in(day, hour(4), User(is_superuser=True)), day, hour(4)).rates
    assert rates == SuccessRates(passed=1, failed=3, excused=1)
    assert (rates.raw, rates.adjusted) == (1 / 4, 1 / 3)


def test_periods_that_meet_or_overlap_are_joined() -> None:
    def opened(start: float, end: float, *sites: str) -> OpenWindow:
        return OpenWindow("", hour(start), hour(end), frozenset(sites))

    everywhere, by_site = joined_periods(
        [
            opened(4, 5, "a"),
            opened(0, 2, "a", "b"),
            opened(2, 3, "a"),
            opened(7, 8),
            opened(1, 6, "b"),
            opened(7, 7.5),
        ]
    )
    assert everywhere == [(hour(7), hour(8))]
    assert by_site == {"a": [(hour(0), hour(3)), (hour(4), hour(5))], "b": [(hour(0), hour(6))]}
