"""What runs used is kept by site, and a site takes part in no more than it gives for a day."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from monitor.ingest.service import ingest
from monitor.ledger import transitions
from monitor.ledger.admission_context import load_context
from monitor.ledger.claim import claim_due
from monitor.ledger.expand import expand
from monitor.ledger.reap import reap
from monitor.ledger.run_now import run_now
from monitor.models import Resource, Run, Sample, Series, Site, Usage
from monitor.models.run import State
from reporters import report as wire
from reporters import usage
from tests.monitor.builders import circle_report
from tests.monitor.waiters import waiting
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
GB = 10**9


def ran(slot: datetime, used: dict[str, usage.ResourceUsage] | None = None, **changes: Any) -> None:
    """A run of circle at *slot* that used *used* has been reported."""
    assert ingest(wire.to_json(replace(circle_report(slot), usage=used or {}, **changes))).accepted


def limit(**budget: float) -> None:
    Site.objects.filter(name="site-of-here").update(**budget)


def kept() -> dict[str, tuple[int | None, float | None]]:
    """By site, the bytes and CPU seconds of all runs."""
    return {one.site.name: (one.bytes, one.cpu_seconds) for one in Usage.objects.select_related("site")}


def test_a_run_is_put_to_the_account_of_every_site_that_it_was_bound_to(
    circle: Series, noon: datetime
) -> None:
    ran(noon, {"here": usage.ResourceUsage(100, 7, 1.5)}, bindings={"ring": ("here", "there")})
    assert kept() == {"site-of-here": (107, 1.5), "site-of-there": (0, 0.0)}
    assert {one.began_at for one in Usage.objects.all()} == {noon}


def test_resources_of_one_site_are_one_account(circle: Series, noon: datetime) -> None:
    Resource.objects.update(site=Site.objects.get(name="site-of-here"))
    ran(
        noon,
        {
            "here": usage.ResourceUsage(bytes_sent=5),
            "there": usage.ResourceUsage(bytes_received=5, cpu_seconds=2.0),
        },
    )
    assert kept() == {"site-of-here": (10, 2.0)}


def test_a_report_without_usage_counts_as_zero_at_every_site(circle: Series, noon: datetime) -> None:
    ran(noon)
    assert kept() == {"site-of-here": (0, 0.0), "site-of-there": (0, 0.0)}


def test_a_report_that_comes_twice_counts_once_and_one_of_an_unknown_resource_is_taken(
    circle: Series, noon: datetime
) -> None:
    for _ in range(2):
        ran(noon, {"here": usage.ResourceUsage(1), "elsewhere": usage.ResourceUsage(2)})
    assert kept() == {"site-of-here": (1, 0.0), "site-of-there": (0, 0.0)}


def test_more_than_the_depot_can_hold_is_refused(circle: Series, noon: datetime) -> None:
    most = usage.ResourceUsage(2**63 - 1, 2**63 - 1)
    receipt = ingest(wire.to_json(replace(circle_report(noon), usage={"here": most})))
    assert "cannot hold" in receipt.error
    assert Run.objects.count() == Usage.objects.count() == 0


def test_a_run_that_its_reporter_skipped_has_measured_and_used_nothing_and_never_ran(
    circle: Series, noon: datetime
) -> None:
    ran(noon, {}, outcome="skipped", reason="load: 5.2 at here, at most 4 allowed")
    run = Run.objects.get()
    assert (run.state, run.reason) == (State.SKIPPED, "load: 5.2 at here, at most 4 allowed")
    assert (run.started_at, run.ended_at) == (None, None)
    assert Sample.objects.count() == Usage.objects.count() == 0


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"runs_per_day": 2}, "taken part in 2 of 2 runs"),
        ({"bytes_per_day": 2 * GB}, "moved 3.0 GB of 2.0 GB"),
        ({"cpu_hours_per_day": 0.5}, "computed 1.00 of 0.50 CPU-hours"),
    ],
)
def test_slots_are_skipped_when_the_budget_of_a_site_is_spent_until_the_next_day(
    circle: Series, noon: datetime, budget: dict[str, float], said: str
) -> None:
    limit(**budget)
    ran(noon - 2 * MINUTE, {"here": usage.ResourceUsage(GB, GB, 1800.0)})
    ran(noon - MINUTE, {"here": usage.ResourceUsage(GB, 0, 1800.0)})
    expand(noon)
    assert claim_due(noon + MINUTE) == []
    skipped = Run.objects.get(slot=noon + MINUTE)
    assert (skipped.state, skipped.reason) == (State.SKIPPED, f"budget: site-of-here has {said} today")
    assert len(claim_due(noon + DAY / 2)) == 1


def test_a_budget_binds_who_asks_as_well(circle: Series, noon: datetime) -> None:
    limit(runs_per_day=1)
    ran(noon - MINUTE, {})
    asked = run_now(circle, who="ada", now=noon)
    assert claim_due(noon) == []
    asked.refresh_from_db()
    assert asked.state == State.SKIPPED


def test_runs_whose_use_is_not_known_count_as_runs(circle: Series, noon: datetime) -> None:
    limit(runs_per_day=2, bytes_per_day=GB)
    ran(noon - MINUTE)
    known = load_context(noon)
    assert (known.used["site-of-here"].runs, known.used["site-of-here"].bytes) == (1, 0)


def test_a_run_that_was_lost_counts_as_a_run_until_its_late_report_says_what_it_used(
    circle: Series, noon: datetime
) -> None:
    run = run_now(circle, who="ada", now=noon)
    for _ in range(3):
        begin(run, noon)
        reap(noon + MINUTE)
    assert kept() == {"site-of-here": (None, None), "site-of-there": (None, None)}
    ran(noon, {"here": usage.ResourceUsage(bytes_sent=9)})
    assert kept() == {"site-of-here": (9, 0.0), "site-of-there": (0, 0.0)}


@pytest.mark.django_db(transaction=True)
def test_what_a_late_report_says_counts_also_if_its_run_is_just_being_given_up(
    circle: Series, noon: datetime
) -> None:
    run = run_now(circle, who="ada", now=noon)
    for _ in range(3):
        transitions.move(Run.objects.all(), [run.pk], State.EXPECTED, cause="a test")
        begin(run, noon)
    bound = {"ring": ("here", "there")}
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE monitor_binding")  # who gives the run up asks what it was bound to
            reaping = pool.submit(alone, reap, noon + MINUTE)
            assert eventually(lambda: waiting() == 1)
            reporting = pool.submit(
                alone, ran, noon, {"here": usage.ResourceUsage(bytes_sent=9)}, bindings=bound
            )
            assert eventually(lambda: reporting.done() or waiting() == 2)
        reaping.result()
        reporting.result()
    assert kept() == {"site-of-here": (9, 0.0), "site-of-there": (0, 0.0)}


def begin(run: Run, at: datetime) -> None:
    """It is run, by somebody who is not heard of any more."""
    transitions.move(Run.objects.all(), [run.pk], State.CLAIMED, cause="a test")
    transitions.move(
        Run.objects.all(), [run.pk], State.RUNNING, cause="a test", started_at=at, lease_until=at
    )


def alone(work: Callable[..., None], *told: Any, **more: Any) -> None:
    """Do it in this thread, on a connection of its own."""
    try:
        work(*told, **more)
    finally:
        connection.close()


def test_nobody_asks_what_was_used_while_no_site_has_a_budget(circle: Series, noon: datetime) -> None:
    def asked_for_usage() -> int:
        with CaptureQueriesContext(connection) as asked:
            load_context(noon)
        return sum("monitor_usage" in query["sql"] for query in asked)

    assert asked_for_usage() == 0
    limit(runs_per_day=2)
    assert asked_for_usage() == 1


def test_the_sums_of_a_day_are_read_from_an_index_alone(circle: Series, noon: datetime) -> None:
    ran(noon, {})
    used = Usage.objects.on_day_of(noon).filter(site__in=[1]).order_by()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        plan = used.values("site_id", "bytes", "cpu_seconds").explain()
    assert "Index Only Scan using usage_site_day" in plan
