"""The home reporter executes what is claimed: really, over directories of this host."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from monitor.ledger.claim import Claim, claim_due
from monitor.ledger.reap import reap
from monitor.ledger.run_now import run_now
from monitor.models import RawReport, Resource, Run, Series, Transition, Usage
from monitor.models.run import State
from monitor.worker.deliver_spool import deliver, spool
from monitor.worker.run_claimed import LeaseKeeper, run_claimed
from monitor.worker.start_runs import start_runs
from reporters import report as wire
from tests.monitor.builders import asked_for, circle_report, noops

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from uuid import UUID

    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_spool(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"


def claimed(series: Series) -> Claim:
    run_now(series, who="ada")
    (claim,) = claim_due(timezone.now())
    return claim


def test_a_claimed_run_is_run_and_its_report_is_in_the_depot(circle: Series) -> None:
    claim = claimed(circle)
    run_claimed([claim.run_id])
    run = Run.objects.get()
    assert run.state == State.PASSED, run.reason
    report = RawReport.objects.get().parsed()
    assert [stage.name for stage in report.stages] == [
        "init",
        "stage_data",
        "transfer_ring",
        "compare",
        "cleanup",
    ]
    assert list(spool().pending()) == []


def test_what_a_run_used_is_put_to_the_account_of_its_sites(circle: Series) -> None:
    claim = claimed(circle)
    run_claimed([claim.run_id])
    assert {one.site.name: one.bytes for one in Usage.objects.select_related("site")} == {
        "site-of-here": 2000,
        "site-of-there": 2000,
    }


def test_a_run_is_skipped_by_its_reporter_while_a_resource_is_too_busy(
    circle: Series, tmp_path: Path
) -> None:
    cat = tmp_path / "cat"
    cat.write_text("#!/bin/sh\necho 5.20 4.00 3.00 1/100 9\n")
    cat.chmod(0o755)
    busy = {"kind": "local", "path": f"{tmp_path}:/usr/bin:/bin"}
    Resource.objects.filter(name="there").update(shell=busy)
    Series.objects.update(max_load1=4.0, warm_up_runs=2)
    Resource.objects.filter(name="here").update(shell={**busy, "path": "/no/programs/here"})
    claim = claimed(circle)
    run_claimed([claim.run_id])
    run = Run.objects.get()
    assert (run.state, run.reason) == (State.SKIPPED, "load: 5.2 at there, at most 4 allowed")
    assert list((tmp_path / "there").iterdir()) == []


def test_a_series_is_warmed_up_as_often_as_it_says(circle: Series) -> None:
    Series.objects.update(warm_up_runs=1)
    claim = claimed(circle)
    run_claimed([claim.run_id])
    report = RawReport.objects.get().parsed()
    assert report.outcome == "passed"
    assert report.log[0].text.startswith("warm-up 1 of 1 took ")


def test_a_task_that_arrives_twice_runs_once(circle: Series) -> None:
    claim = claimed(circle)
    run_claimed([claim.run_id])
    first = RawReport.objects.get().received_at
    run_claimed([claim.run_id])
    assert RawReport.objects.get().received_at == first


def test_a_task_that_waited_longer_than_its_claim_held_does_nothing(circle: Series) -> None:
    stale = claimed(circle)
    reap(timezone.now() + timedelta(seconds=31))
    run_claimed([stale.run_id])
    assert Run.objects.get().state == State.EXPECTED


def test_of_the_tasks_of_two_claims_the_first_that_arrives_runs(circle: Series) -> None:
    claimed(circle)
    reap(timezone.now() + timedelta(seconds=31))
    (again,) = claim_due(timezone.now())
    run_claimed([again.run_id])
    run_claimed([again.run_id])
    assert Run.objects.get().state == State.PASSED
    assert [one.target for one in Transition.objects.all()].count(State.RUNNING) == 1


def test_the_report_of_an_executor_that_died_before_delivering_is_used(
    circle: Series, noon: datetime
) -> None:
    run = run_now(circle, who="ada", now=noon)
    (claim,) = claim_due(noon)
    spool().put(run.pk, wire.to_json(circle_report(noon)))
    run_claimed([claim.run_id])
    assert RawReport.objects.get().parsed().seconds == 7.0  # the spooled one; nothing was run again


def test_a_report_that_the_depot_refuses_is_set_aside_and_does_not_stop_the_others(
    circle: Series, noon: datetime
) -> None:
    stranger = circle_report(noon, series="nobody-knows")
    known = circle_report(noon)
    for report in (stranger, known):
        spool().put(report.run, wire.to_json(report))
    deliver()
    assert Run.objects.get().state == State.PASSED
    assert list(spool().pending()) == []


def test_a_report_that_is_refused_ends_its_run_with_that_reason(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    claim_due(noon)
    endless = wire.to_json(circle_report(noon)).replace(b'"seconds":7.0', b'"seconds":1e300')
    spool().put(run.pk, endless)
    deliver()
    run.refresh_from_db()
    assert run.state == State.BROKEN
    assert "its report was refused" in run.reason
    assert list(spool().pending()) == []


def test_a_spool_that_takes_nothing_does_not_cost_a_report(circle: Series, settings: Settings) -> None:
    settings.VAR_DIR.mkdir()
    (settings.VAR_DIR / "spool").write_text("a file where a directory should be")
    claim = claimed(circle)
    run_claimed([claim.run_id])
    assert Run.objects.get().state == State.PASSED


def test_a_failed_run_says_which_stage_and_resource(circle: Series) -> None:
    resource = circle.bindings.get(position=1).resource
    resource.scratch = "/proc/no-such-place"
    resource.save()
    claim = claimed(circle)
    run_claimed([claim.run_id])
    run = Run.objects.get()
    assert (run.state, run.stage, run.failed_resource) == (State.FAILED, "init", "there")
    assert "/proc/no-such-place" in run.reason


def test_a_series_whose_probe_is_gone_ends_as_a_run_with_a_reason(circle: Series) -> None:
    Series.objects.update(probe="no_such_probe")
    claim = claimed(circle)
    run_claimed([claim.run_id])
    run = Run.objects.get()
    assert run.state == State.BROKEN
    assert "no_such_probe" in run.reason


def test_a_heartbeat_keeps_the_lease_and_says_the_stage(circle: Series, settings: Settings) -> None:
    settings.GRIDCAST_HEARTBEAT_SECONDS = 0.01
    claim = claimed(circle)
    (begun,) = start_runs([claim.run_id], timezone.now())
    Run.objects.update(lease_until=timezone.now())
    with LeaseKeeper() as heartbeat:
        heartbeat.keep(begun)
        heartbeat.enter("transfer_ring")
        deadline = threading.Event()
        while not deadline.wait(0.01) and Run.objects.get().stage != "transfer_ring":
            assert timezone.now() < claim_time(claim) + timedelta(seconds=20)
    reap(timezone.now())
    assert Run.objects.get().state == State.RUNNING


def claim_time(claim: Claim) -> datetime:
    at = Run.objects.get(pk=claim.run_id).claimed_at
    assert at is not None
    return at


def claimed_together(series: Sequence[Series]) -> list[UUID]:
    """A run of each, by slot in their order, all claimed."""
    now = timezone.now()
    for number, one in enumerate(series):
        asked_for(one, now + number * timedelta(milliseconds=1))
    return [claim.run_id for claim in claim_due(now + timedelta(seconds=1))]


def takes(series: Series, seconds: float) -> None:
    Series.objects.filter(pk=series.pk).update(probe="nagios", parameters={"command": f"sleep {seconds}"})


def states() -> list[str]:
    """Of all runs, by slot."""
    return list(Run.objects.order_by("slot").values_list("state", flat=True))


def test_all_runs_of_a_task_are_run_in_the_order_of_their_slots(circle: Series, tmp_path: Path) -> None:
    together = claimed_together(noops(3, tmp_path))
    run_claimed(together[::-1])
    assert states() == [State.PASSED] * 3
    began = [report.parsed().started_at for report in RawReport.objects.order_by("run__slot")]
    assert began == sorted(began)
    assert not spool().any()


def test_of_the_runs_of_a_task_those_that_somebody_else_has_are_passed_over(
    circle: Series, tmp_path: Path
) -> None:
    first, second, third = claimed_together(noops(3, tmp_path))
    start_runs([second], timezone.now())  # somebody else's task was here before
    run_claimed([first, second, third])
    assert states() == [State.PASSED, State.RUNNING, State.PASSED]


def test_one_run_of_a_task_that_fails_does_not_keep_the_others_from_running(
    circle: Series, tmp_path: Path
) -> None:
    series = noops(3, tmp_path)
    Series.objects.filter(pk=series[1].pk).update(probe="no_such_probe")
    run_claimed(claimed_together(series))
    assert states() == [State.PASSED, State.BROKEN, State.PASSED]


def test_of_the_runs_of_a_task_it_is_the_one_under_way_that_is_kept_alive(
    circle: Series, settings: Settings, tmp_path: Path
) -> None:
    settings.GRIDCAST_HEARTBEAT_SECONDS = 0.05
    series = noops(3, tmp_path)
    takes(series[1], 0.5)
    run_claimed(claimed_together(series))
    assert states() == [State.PASSED] * 3
    before, slow, _ = Run.objects.order_by("slot").values_list("lease_until", flat=True)
    assert slow > before  # type: ignore[operator]  # they began with the same


def test_what_comes_after_a_run_that_took_unexpectedly_long_is_left_to_others(
    circle: Series, settings: Settings, tmp_path: Path
) -> None:
    settings.GRIDCAST_LEASE_SECONDS = 1.0
    series = noops(2, tmp_path)
    takes(series[0], 0.5)
    together = claimed_together(series)
    run_claimed(together)
    assert states() == [State.PASSED, State.RUNNING]
    reap(timezone.now() + timedelta(seconds=2))
    assert Run.objects.get(pk=together[1]).reason == "its executor fell silent; it is run again"
    (again,) = claim_due(timezone.now())
    assert (again.run_id, again.attempt) == (together[1], 2)
    run_claimed([again.run_id])
    assert states() == [State.PASSED] * 2


def test_a_report_that_waits_is_not_made_again_while_somebody_else_delivers(
    circle: Series, tmp_path: Path
) -> None:
    waits, other = claimed_together(noops(2, tmp_path))
    slot = Run.objects.get(pk=waits).slot
    spool().put(waits, wire.to_json(circle_report(slot, series="noop-0")))
    with spool().exclusive():  # its report is on its way, by another process
        run_claimed([waits, other])
        assert states() == [State.CLAIMED, State.RUNNING]
        assert {entry.run for entry in spool().pending()} == {waits, other}
    assert deliver() == 2
    assert states() == [State.PASSED, State.PASSED]
    assert RawReport.objects.get(run=waits).parsed().seconds == 7.0  # the one that waited
    assert [one.run_id for one in Transition.objects.filter(target=State.RUNNING)] == [other]
