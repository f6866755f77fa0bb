"""Usage is recorded by site, and daily budgets of sites are enforced."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from monitor.models import Resource, Run, Sample, Series, Site, Usage
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger import transitions
from monitor.runs.ledger.admission_context import load_context
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now
from reporters import report as wire
from reporters import usage
from tests.monitor.builders import circle_report
from tests.monitor.waiters import waiting
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
GB = 10**9


def ran(slot: datetime, used: dict[str, usage.ResourceUsage] | None = None, **changes: Any) -> None:
    """Ingest the report of a run of circle at *slot* with the usage *used*."""
    assert ingest(wire.to_json(replace(circle_report(slot), usage=used or {}, **changes))).accepted


def limit(**budget: float) -> None:
    Site.objects.filter(name="site-of-here").update(**budget)


def recorded_usage() -> dict[str, tuple[int | None, float | None]]:
    """Return the recorded bytes and CPU seconds by site."""
    return {
        usage.site.name: (usage.bytes, usage.cpu_seconds) for usage in Usage.objects.select_related("site")
    }


def test_usage_is_recorded_for_every_site_that_a_run_was_bound_to(circle: Series, noon: datetime) -> None:
    ran(noon, {"here": usage.ResourceUsage(100, 7, 1.5)}, bindings={"ring": ("here", "there")})
    assert recorded_usage() == {"site-of-here": (107, 1.5), "site-of-there": (0, 0.0)}
    assert {usage.began_at for usage in Usage.objects.all()} == {noon}


def test_the_usage_of_resources_of_one_site_is_added_up(circle: Series, noon: datetime) -> None:
    Resource.objects.update(site=Site.objects.get(name="site-of-here"))
    ran(
        noon,
        {
            "here": usage.ResourceUsage(bytes_sent=5),
            "there": usage.ResourceUsage(bytes_received=5, cpu_seconds=2.0),
        },
    )
    assert recorded_usage() == {"site-of-here": (10, 2.0)}


def test_a_report_without_usage_counts_as_zero_at_every_site(circle: Series, noon: datetime) -> None:
    ran(noon)
    assert recorded_usage() == {"site-of-here": (0, 0.0), "site-of-there": (0, 0.0)}


def test_a_duplicate_report_counts_once_and_unknown_resources_are_ignored(
    circle: Series, noon: datetime
) -> None:
    for _ in range(2):
        ran(noon, {"here": usage.ResourceUsage(1), "elsewhere": usage.ResourceUsage(2)})
    assert recorded_usage() == {"site-of-here": (1, 0.0), "site-of-there": (0, 0.0)}


def test_usage_that_the_database_cannot_store_is_refused(circle: Series, noon: datetime) -> None:
    most = usage.ResourceUsage(2**63 - 1, 2**63 - 1)
    receipt = ingest(wire.to_json(replace(circle_report(noon), usage={"here": most})))
    assert "cannot hold" in receipt.error
    assert Run.objects.count() == Usage.objects.count() == 0


def test_a_run_that_its_reporter_skipped_has_no_usage_and_no_times(circle: Series, noon: datetime) -> None:
    ran(noon, {}, outcome="skipped", reason="load: 5.2 at here, at most 4 allowed")
    run = Run.objects.get()
    assert (run.state, run.reason) == (State.SKIPPED, "load: 5.2 at here, at most 4 allowed")
    assert (run.started_at, run.ended_at) == (None, None)
    assert Sample.objects.count() == Usage.objects.count() == 0


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"runs_per_day": 2}, "taken part in 2 of 2 runs"),
        ({"bytes_per_day": 2 * GB}, "moved 3.0 GB of 2.0 GB"),
        ({"cpu_hours_per_day": 0.5}, "computed 1.00 of 0.50 CPU-hours"),
    ],
)
def test_slots_are_skipped_until_the_next_day_when_the_budget_of_a_site_is_used_up(
    circle: Series, noon: datetime, budget: dict[str, float], reason: str
) -> None:
    limit(**budget)
    ran(noon - 2 * MINUTE, {"here": usage.ResourceUsage(GB, GB, 1800.0)})
    ran(noon - MINUTE, {"here": usage.ResourceUsage(GB, 0, 1800.0)})
    expand(noon)
    assert claim_due(noon + MINUTE) == []
    skipped = Run.objects.get(slot=noon + MINUTE)
    assert (skipped.state, skipped.reason) == (State.SKIPPED, f"budget: site-of-here has {reason} today")
    assert len(claim_due(noon + DAY / 2)) == 1


def test_a_budget_applies_to_requested_runs_too(circle: Series, noon: datetime) -> None:
    limit(runs_per_day=1)
    ran(noon - MINUTE, {})
    requested = run_now(circle, who="ada", now=noon)
    assert claim_due(noon) == []
    requested.refresh_from_db()
    assert requested.state == State.SKIPPED


def test_runs_without_usage_count_as_runs(circle: Series, noon: datetime) -> None:
    limit(runs_per_day=2, bytes_per_day=GB)
    ran(noon - MINUTE)
    context = load_context(noon)
    assert (context.used["site-of-here"].runs, context.used["site-of-here"].bytes) == (1, 0)


def test_a_lost_run_counts_as_a_run_until_a_late_report_has_its_usage(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    for _ in range(3):
        begin(run, noon)
        reap(noon + MINUTE)
    assert recorded_usage() == {"site-of-here": (None, None), "site-of-there": (None, None)}
    ran(noon, {"here": usage.ResourceUsage(bytes_sent=9)})
    assert recorded_usage() == {"site-of-here": (9, 0.0), "site-of-there": (0, 0.0)}


@pytest.mark.django_db(transaction=True)
def test_a_late_report_is_counted_although_its_run_is_being_lost(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    for _ in range(3):
        transitions.move(Run.objects.all(), [run.pk], State.EXPECTED, cause="a test")
        begin(run, noon)
    bound = {"ring": ("here", "there")}
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE monitor_binding")  # ending a run as lost reads its bindings
            reaping = pool.submit(own, reap, noon + MINUTE)
            assert eventually(lambda: waiting() == 1)
            reporting = pool.submit(
                own, ran, noon, {"here": usage.ResourceUsage(bytes_sent=9)}, bindings=bound
            )
            assert eventually(lambda: reporting.done() or waiting() == 2)
        reaping.result()
        reporting.result()
    assert recorded_usage() == {"site-of-here": (9, 0.0), "site-of-there": (0, 0.0)}


def begin(run: Run, at: datetime) -> None:
    """Start *run* with an expired lease."""
    transitions.move(Run.objects.all(), [run.pk], State.CLAIMED, cause="a test")
    transitions.move(
        Run.objects.all(), [run.pk], State.RUNNING, cause="a test", started_at=at, lease_until=at
    )


def own(work: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Do *work* with a connection of its own."""
    try:
        work(*args, **kwargs)
    finally:
        connection.close()


def test_usage_is_not_queried_while_no_site_has_a_budget(circle: Series, noon: datetime) -> None:
    def usage_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            load_context(noon)
        return sum("monitor_usage" in query["sql"] for query in queries)

    assert usage_queries() == 0
    limit(runs_per_day=2)
    assert usage_queries() == 1


def test_the_sums_of_a_day_use_an_index_only_scan(circle: Series, noon: datetime) -> None:
    ran(noon, {})
    used = Usage.objects.on_day_of(noon).filter(site__in=[1]).order_by()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        plan = used.values("site_id", "bytes", "cpu_seconds").explain()
    assert "Index Only Scan using usage_site_day" in plan
