"""The home reporter runs claimed runs, with directories of this host as sites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.utils import timezone

from monitor.core.db.advisory_locks import AdvisoryLock, lock_key
from monitor.models import RawReport, Resource, Run, Series, Transition, Usage
from monitor.models.run import State
from monitor.runs.ledger.claim import Claim, claim_due
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.deliver_spool import deliver, lock_name, spool_of, spool_report, spooled_among
from monitor.runs.worker.run_claimed import LeaseKeeper, run_claimed
from monitor.runs.worker.start_runs import start_runs
from reporters import report as wire
from tests.monitor.builders import asked_for, circle_report, noops
from tests.waiting import eventually

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


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ('{"probes": {"forbid": ["circle"]}}', "policy: the probe circle is forbidden"),
        ('{"shells": {"allow": ["ssh"]}}', "policy: the shell 'local' of here is not allowed"),
        (
            '{"caps": {"load1": 4}}',
            "policy: site-policy.json of the home reporter: caps is a rule for agents",
        ),
        ("{", "policy: unreadable"),
        ('{"shells": {"allow": ["local"]}}', ""),
    ],
)
def test_the_policy_of_this_host_refuses_runs(
    circle: Series, settings: Settings, policy: str, reason: str
) -> None:
    settings.VAR_DIR.mkdir()
    (settings.VAR_DIR / "site-policy.json").write_text(policy)
    run_claimed([claimed(circle).run_id])
    run = Run.objects.get()
    assert run.state == (State.SKIPPED if reason else State.PASSED), run.reason
    assert run.reason.startswith(reason)


def test_a_claimed_run_is_run_and_its_report_is_stored(circle: Series) -> None:
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
    assert spool_of("home").is_empty()


def test_the_usage_of_a_run_is_recorded_for_its_sites(circle: Series) -> None:
    claim = claimed(circle)
    run_claimed([claim.run_id])
    assert {usage.site.name: usage.bytes for usage in Usage.objects.select_related("site")} == {
        "site-of-here": 2000,
        "site-of-there": 2000,
    }


def test_a_run_is_skipped_while_the_load_of_a_resource_is_too_high(circle: Series, tmp_path: Path) -> None:
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


def test_a_series_runs_its_warm_up_runs_first(circle: Series) -> None:
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


def test_a_task_that_arrives_after_its_lease_expired_does_nothing(circle: Series) -> None:
    stale = claimed(circle)
    reap(timezone.now() + timedelta(seconds=31))
    run_claimed([stale.run_id])
    assert Run.objects.get().state == State.EXPECTED


def test_of_the_tasks_of_two_claims_of_a_run_only_the_first_runs_it(circle: Series) -> None:
    claimed(circle)
    reap(timezone.now() + timedelta(seconds=31))
    (again,) = claim_due(timezone.now())
    run_claimed([again.run_id])
    run_claimed([again.run_id])
    assert Run.objects.get().state == State.PASSED
    assert [transition.target for transition in Transition.objects.all()].count(State.RUNNING) == 1


def test_a_report_spooled_by_a_worker_that_died_is_delivered_instead_of_running_again(
    circle: Series, noon: datetime
) -> None:
    run_now(circle, who="ada", now=noon)
    (claim,) = claim_due(noon)
    spool_report(circle_report(noon))
    run_claimed([claim.run_id])
    assert RawReport.objects.get().parsed().seconds == 7.0  # the spooled one; nothing was run again


def test_a_refused_report_is_set_aside_and_does_not_stop_the_others(circle: Series, noon: datetime) -> None:
    stranger = circle_report(noon, series="nobody-knows")
    accepted = circle_report(noon)
    for report in (stranger, accepted):
        spool_report(report)
    deliver()
    assert Run.objects.get().state == State.PASSED
    assert spool_of("home").is_empty()


def test_a_refused_report_ends_its_run_with_that_reason(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    claim_due(noon)
    endless = wire.to_json(circle_report(noon)).replace(b'"seconds":7.0', b'"seconds":1e300')
    spool_of("home").append(endless)
    deliver()
    run.refresh_from_db()
    assert run.state == State.BROKEN
    assert "its report was refused" in run.reason
    assert spool_of("home").is_empty()


def test_no_report_is_lost_when_the_spool_cannot_be_written(circle: Series, settings: Settings) -> None:
    settings.VAR_DIR.mkdir()
    (settings.VAR_DIR / "spool").write_text("a file where a directory should be")
    claim = claimed(circle)
    run_claimed([claim.run_id])
    assert Run.objects.get().state == State.PASSED


def test_a_failed_run_names_the_stage_and_resource(circle: Series) -> None:
    resource = circle.bindings.get(position=1).resource
    resource.scratch = "/proc/no-such-place"
    resource.save()
    claim = claimed(circle)
    run_claimed([claim.run_id])
    run = Run.objects.get()
    assert (run.state, run.stage, run.failed_resource) == (State.FAILED, "init", "there")
    assert "/proc/no-such-place" in run.reason


def test_a_run_of_a_missing_probe_ends_as_broken_with_a_reason(circle: Series) -> None:
    Series.objects.update(probe="no_such_probe")
    claim = claimed(circle)
    run_claimed([claim.run_id])
    run = Run.objects.get()
    assert run.state == State.BROKEN
    assert "no_such_probe" in run.reason


def test_the_lease_keeper_renews_the_lease_and_records_the_stage(circle: Series, settings: Settings) -> None:
    settings.GRIDCAST_HEARTBEAT_SECONDS = 0.01
    claim = claimed(circle)
    (started,) = start_runs([claim.run_id], timezone.now())
    Run.objects.update(lease_until=timezone.now())
    with LeaseKeeper() as keeper:
        keeper.keep(started)
        keeper.enter("transfer_ring")
        assert eventually(lambda: Run.objects.get().stage == "transfer_ring")
    reap(timezone.now())
    assert Run.objects.get().state == State.RUNNING


def claim_all(series: Sequence[Series]) -> list[UUID]:
    """Claim a run of each of *series*, with slots in their order; return the run ids."""
    now = timezone.now()
    for number, each_series in enumerate(series):
        asked_for(each_series, now + number * timedelta(milliseconds=1))
    return [claim.run_id for claim in claim_due(now + timedelta(seconds=1))]


def make_slow(series: Series, seconds: float) -> None:
    Series.objects.filter(pk=series.pk).update(probe="nagios", parameters={"command": f"sleep {seconds}"})


def states() -> list[str]:
    """Return the states of all runs, by slot."""
    return list(Run.objects.order_by("slot").values_list("state", flat=True))


def test_the_runs_of_a_task_are_run_in_the_order_of_their_slots(circle: Series, tmp_path: Path) -> None:
    together = claim_all(noops(3, tmp_path))
    run_claimed(together[::-1])
    assert states() == [State.PASSED] * 3
    began = [report.parsed().started_at for report in RawReport.objects.order_by("run__slot")]
    assert began == sorted(began)
    assert spool_of("home").is_empty()


def test_a_task_skips_runs_that_another_task_has_started(circle: Series, tmp_path: Path) -> None:
    first, second, third = claim_all(noops(3, tmp_path))
    start_runs([second], timezone.now())  # by another task
    run_claimed([first, second, third])
    assert states() == [State.PASSED, State.RUNNING, State.PASSED]


def test_a_run_that_fails_does_not_stop_the_others_of_its_task(circle: Series, tmp_path: Path) -> None:
    series = noops(3, tmp_path)
    Series.objects.filter(pk=series[1].pk).update(probe="no_such_probe")
    run_claimed(claim_all(series))
    assert states() == [State.PASSED, State.BROKEN, State.PASSED]


def test_the_lease_of_the_current_run_of_a_task_is_renewed(
    circle: Series, settings: Settings, tmp_path: Path
) -> None:
    settings.GRIDCAST_HEARTBEAT_SECONDS = 0.05
    series = noops(3, tmp_path)
    make_slow(series[1], 0.5)
    run_claimed(claim_all(series))
    assert states() == [State.PASSED] * 3
    before, slow, _ = Run.objects.order_by("slot").values_list("lease_until", flat=True)
    assert slow > before  # type: ignore[operator]  # they started with the same lease


def test_runs_after_one_that_took_unexpectedly_long_are_claimed_again(
    circle: Series, settings: Settings, tmp_path: Path
) -> None:
    settings.GRIDCAST_LEASE_SECONDS = 1.0
    series = noops(2, tmp_path)
    make_slow(series[0], 0.5)
    together = claim_all(series)
    run_claimed(together)
    assert states() == [State.PASSED, State.RUNNING]
    reap(timezone.now() + timedelta(seconds=2))
    assert Run.objects.get(pk=together[1]).reason == "its executor fell silent; it is run again"
    (again,) = claim_due(timezone.now())
    assert (again.run_id, again.attempt) == (together[1], 2)
    run_claimed([again.run_id])
    assert states() == [State.PASSED] * 2


@contextmanager
def delivering() -> Iterator[None]:
    """Run the block while another session delivers the spool."""
    key = lock_key(AdvisoryLock.SPOOL, lock_name(spool_of("home")))
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [key])
            yield
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
    finally:
        other.close()


def test_a_run_whose_report_waits_is_not_run_again_while_another_process_delivers(
    circle: Series, tmp_path: Path
) -> None:
    waits, other = claim_all(noops(2, tmp_path))
    slot = Run.objects.get(pk=waits).slot
    spool_report(circle_report(slot, series="noop-0"))
    with delivering():  # another process
        run_claimed([waits, other])
        assert states() == [State.CLAIMED, State.RUNNING]
        assert spooled_among([waits, other]) == {waits, other}
    assert deliver() == 2
    assert states() == [State.PASSED, State.PASSED]
    assert RawReport.objects.get(run=waits).parsed().seconds == 7.0  # the one that waited
    assert [transition.run_id for transition in Transition.objects.filter(target=State.RUNNING)] == [other]
