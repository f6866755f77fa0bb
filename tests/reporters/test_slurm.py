"""Provoked failures in a real Slurm, after which no job is in its queue."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware.slurm import SlurmCluster, SlurmOptions
from probes.base import OutOfTime
from reporters.base import ConnectionLost, JobFailed, JobStuck, ResourceUnfit, SubmittedJob
from reporters.batch.slurm import Batch
from reporters.config import Assignment, ResourceConfig
from reporters.deadline import Deadline
from reporters.grid import RunGrid
from tests.reporters.clusters import install, slurm_cluster
from tests.reporters.needs import needs
from tests.reporters.places import Place, two_places
from tests.reporters.ssh_sites import SshSites
from tests.waiting import eventually

numbers = itertools.count()
HOLD = ["--hold"]
# faketime names its shared memory after its process id, and fails where a killed faketime with the same id
# left some.
_AT_TWENTY_TIMES_THE_SPEED = [
    "sh",
    "-c",
    'rm -f /dev/shm/sem.faketime_sem_$$ /dev/shm/faketime_shm_$$; exec faketime -f "+0 x20" "$@"',
    "sh",
]


@pytest.fixture(scope="module")
def running() -> Iterator[SlurmCluster]:
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(running: SlurmCluster) -> Iterator[SlurmCluster]:
    yield running
    assert eventually(lambda: running.jobs() == [])


@pytest.fixture(scope="module")
def place(running: SlurmCluster) -> Iterator[Place]:
    with two_places("local") as (one, _):
        install(running.programs, one)
        yield one


class Jobs:
    """Hands in jobs in a directory of its own; all are cancelled in the end."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.directory = place.scratch / f"run-{next(numbers)}"
        self.directory.mkdir()
        self._jobs: list[SubmittedJob] = []

    def submit(self, *argv: str, wall_seconds: float = 30, **options: Any) -> SubmittedJob:
        system = Batch(self.place.shell, **options)
        job = system.submit(argv, directory=str(self.directory), cpus=1, wall_seconds=wall_seconds)
        self._jobs.append(job)
        return job

    def started(self, *argv: str) -> SubmittedJob:
        job = self.submit(*argv)
        job.wait_started(timeout_seconds=60)
        return job

    def cancel(self) -> None:
        for job in self._jobs:
            job.cancel()


@pytest.fixture
def jobs(cluster: SlurmCluster, place: Place) -> Iterator[Jobs]:
    jobs = Jobs(place)
    yield jobs
    jobs.cancel()


def failure(work: Callable[[], object]) -> str:
    with pytest.raises(JobFailed) as raised:
        work()
    return raised.value.message


@pytest.mark.nightly
def test_a_job_is_submitted_and_followed_through_a_gatekeeper(cluster: SlurmCluster) -> None:
    with two_places("gram") as (gate, _):
        install(cluster.programs, gate)
        jobs = Jobs(gate)
        assert jobs.submit("true").wait_ended(timeout_seconds=60) >= 0
        jobs.cancel()
        assert cluster.jobs() == []


def test_a_partition_that_does_not_exist_is_refused_in_slurms_words(jobs: Jobs) -> None:
    message = failure(lambda: jobs.submit("true", queue="nosuch"))
    assert message == "the job at one was refused: sbatch: error: invalid partition specified: nosuch"


def test_an_account_that_may_not_use_a_partition_is_refused_in_slurms_words(
    jobs: Jobs, cluster: SlurmCluster
) -> None:
    cluster.run("scontrol", "update", "PartitionName=long", "AllowAccounts=physics")
    try:
        message = failure(lambda: jobs.submit("true", queue="long", account="chemistry"))
        assert message.startswith("the job at one was refused: sbatch: error: ")
        assert "Invalid account or account/partition combination" in message
    finally:
        cluster.run("scontrol", "update", "PartitionName=long", "AllowAccounts=ALL")


def test_queue_account_processors_and_limit_arrive(jobs: Jobs, cluster: SlurmCluster) -> None:
    system = Batch(jobs.place.shell, queue="long", account="physics", extra=HOLD)
    job = system.submit(["true"], directory=str(jobs.directory), cpus=2, wall_seconds=61)
    (number,) = cluster.run("squeue", "-h", "-t", "PENDING", "-o", "%A").split()
    shown = cluster.run("scontrol", "show", "job", "-o", number)
    job.cancel()
    for expected in ("Partition=long", "Account=physics", "NumCPUs=2", "TimeLimit=00:02:00", "Requeue=0"):
        assert f" {expected} " in shown


def test_a_held_job_waits_with_its_reason(jobs: Jobs) -> None:
    with pytest.raises(JobStuck) as raised:
        jobs.submit("true", extra=HOLD).wait_started(timeout_seconds=0.3)
    waited = "the job at one was not started: waited 0.3 s for it"
    assert raised.value.message == f"{waited}; it is PENDING (JobHeldUser)"


def test_a_queue_wait_is_as_long_as_the_job_was_in_the_queue(jobs: Jobs, cluster: SlurmCluster) -> None:
    cluster.close_partitions()
    job = jobs.submit("true")
    began = time.monotonic()
    with pytest.raises(JobStuck, match=r"it is PENDING \(PartitionDown\)"):
        job.wait_started(timeout_seconds=1.5)
    cluster.open_partitions()
    queued = job.wait_started(timeout_seconds=60)
    # Slurm gives times in whole seconds: their difference is off by less than a second either way.
    assert 0.5 < queued < time.monotonic() - began + 1.0


def test_a_job_for_drained_nodes_never_starts(jobs: Jobs, cluster: SlurmCluster) -> None:
    cluster.drain_nodes("new memory")
    try:
        with pytest.raises(JobStuck, match=r"it is PENDING \(.*(DOWN|DRAINED|Resources|Nodes)"):
            jobs.submit("true").wait_started(timeout_seconds=1.5)
    finally:
        cluster.resume_nodes()


def test_an_unwritable_output_is_reported(jobs: Jobs) -> None:
    job = jobs.submit("touch", "ran", extra=["--output=/no/such/directory/file"])
    message = failure(lambda: job.wait_ended(timeout_seconds=60))
    assert message == "the job at one could not be launched: FAILED (JobLaunchFailure)"
    assert not (jobs.directory / "ran").exists()


@pytest.mark.nightly
def test_a_job_cancelled_by_another_user_is_reported_as_cancelled(jobs: Jobs, cluster: SlurmCluster) -> None:
    waiting = jobs.submit("true", extra=HOLD)
    at_work = jobs.started("sleep", "600")
    cluster.run("scancel", "--partition=short")
    assert failure(lambda: waiting.wait_started(timeout_seconds=60)).startswith(
        "the job at one was cancelled: CANCELLED"
    )
    assert failure(lambda: at_work.wait_ended(timeout_seconds=60)).startswith(
        "the job at one was cancelled: CANCELLED"
    )


def test_a_job_whose_node_dies_lost_its_node(jobs: Jobs, cluster: SlurmCluster) -> None:
    job = jobs.submit("sleep", "600", extra=["--nodelist=cn2"])
    job.wait_started(timeout_seconds=60)
    cluster.lose_node("cn2")
    try:
        message = failure(lambda: job.wait_ended(timeout_seconds=60))
        assert message.startswith("the job at one lost its node: NODE_FAIL (NodeDown)")
    finally:
        cluster.start_node("cn2")
        cluster.await_idle()


def test_a_controller_that_is_down_accepts_no_job(jobs: Jobs, cluster: SlurmCluster) -> None:
    cluster.stop_controller()
    try:
        message = failure(lambda: jobs.submit("true"))
    finally:
        cluster.start_controller()
    assert message.startswith("cannot submit a job at one: sbatch: error: Batch job submission failed: ")
    assert "Unable to contact slurm controller" in message


@pytest.mark.nightly
def test_a_job_survives_an_outage_of_the_controller(jobs: Jobs, cluster: SlurmCluster) -> None:
    job = jobs.started("sh", "-c", "until [ -e go ]; do sleep 0.05; done")
    cluster.stop_controller()
    try:
        with pytest.raises(JobStuck, match=r"the batch system does not answer: .*slurm controller"):
            job.wait_ended(timeout_seconds=0.3)
        (jobs.directory / "go").touch()
        assert job.wait_ended(timeout_seconds=60) > 0
    finally:
        cluster.start_controller()
        cluster.await_idle()


def test_a_job_that_ignores_sigterm_ends_soon_after_its_limit(jobs: Jobs) -> None:
    job = jobs.submit("sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600", wall_seconds=0.2)
    message = failure(lambda: job.wait_ended(timeout_seconds=60))
    assert message == "the job at one exceeded its wall limit of 0.2 s"


@pytest.mark.nightly
def test_a_job_killed_by_slurm_at_its_limit_exceeded_it() -> None:
    needs("faketime")
    with (
        slurm_cluster(SlurmOptions(launcher=_AT_TWENTY_TIMES_THE_SPEED)) as hurried,
        two_places("local") as sites,
    ):
        install(hurried.programs, sites[0])
        job = Jobs(sites[0]).submit("sleep", "60000", wall_seconds=3600, extra=["--time=1"])
        message = failure(lambda: job.wait_ended(timeout_seconds=60))
        assert message.startswith("the job at one exceeded its wall limit of 3600 s")
        assert "DUE TO TIME LIMIT" in message
        job.cancel()
        assert hurried.jobs() == []


class Run:
    """A run of one series at one resource, with its own deadline."""

    def __init__(self, resource: ResourceConfig, slot: datetime, limit_seconds: float = 60.0) -> None:
        assignment = Assignment(
            series="gather-main",
            slot=slot,
            reporter="home",
            probe="gather",
            bindings={"compute": ["one"]},
            resources={"one": resource},
        )
        self.deadline = Deadline(limit_seconds, time.monotonic)
        self.grid = RunGrid(assignment, self.deadline, lambda text, level: None)

    def clean_up(self) -> None:
        self.deadline.restart(60.0, "cleanup")
        self.grid.clean_up()


def resource_of(place: Place, *extra: str) -> ResourceConfig:
    batch = {"kind": "slurm", "extra": list(extra)}
    return ResourceConfig("one", "one", place.resource.scratch, shell=place.resource.shell, batch=batch)


def test_a_run_that_is_out_of_time_says_what_its_job_waited_for(cluster: SlurmCluster, place: Place) -> None:
    run = Run(resource_of(place, "--hold"), datetime.now(UTC), limit_seconds=2.0)
    job = run.grid.submit("one", ["true"], cpus=1, wall_seconds=30)
    with pytest.raises(OutOfTime) as raised:
        job.wait_started()
    waiting = "was reached while waiting for the job at one to start"
    assert raised.value.message.endswith(f"{waiting}; it is PENDING (JobHeldUser)")
    assert len(cluster.jobs()) == 1
    run.clean_up()
    assert cluster.jobs() == []


def test_the_jobs_of_a_killed_reporter_are_cancelled_by_the_next_run(
    cluster: SlurmCluster, place: Place
) -> None:
    killed = Run(resource_of(place, "--hold"), datetime(2026, 3, 1, tzinfo=UTC))
    killed.grid.submit("one", ["true"], cpus=1, wall_seconds=30)
    assert len(cluster.jobs()) == 1
    following = Run(resource_of(place), datetime(2026, 3, 2, tzinfo=UTC))
    own = Path(following.grid.scratch("one"))
    assert cluster.jobs() == []
    assert [path.name for path in own.parent.parent.iterdir()] == [own.parent.name]
    following.clean_up()


def test_a_repeated_run_cancels_its_earlier_jobs(cluster: SlurmCluster, place: Place) -> None:
    slot = datetime(2026, 3, 3, tzinfo=UTC)
    Run(resource_of(place, "--hold"), slot).grid.submit("one", ["true"], cpus=1, wall_seconds=30)
    again = Run(resource_of(place), slot)
    again.grid.scratch("one")
    assert cluster.jobs() == []
    again.clean_up()


def test_a_job_whose_number_was_lost_is_cancelled_in_the_cleanup(cluster: SlurmCluster) -> None:
    with SshSites("one") as sites, ThreadPoolExecutor(1) as pool:
        for program in cluster.programs.iterdir():
            sites.sites["one"].install(program.name, f'exec {program} "$@"')
        sites.sites["one"].install("sbatch", f'{cluster.programs}/sbatch --hold "$@"; sleep 60')
        ssh = sites.resource("one")
        run = Run(
            ResourceConfig("one", "one", ssh.scratch, ssh.shell, batch={"kind": "slurm"}), datetime.now(UTC)
        )
        run.grid.scratch("one")
        submitting = pool.submit(run.grid.submit, "one", ["true"], cpus=1, wall_seconds=30)
        assert eventually(lambda: len(cluster.jobs()) == 1)
        sites.drop("one")
        with pytest.raises(ConnectionLost):
            submitting.result()
        run.clean_up()
        assert cluster.jobs() == []
        assert list(sites.sites["one"].scratch.iterdir()) == []


def test_no_script_is_run_that_another_user_can_write(cluster: SlurmCluster, place: Place) -> None:
    own = place.scratch / f"gridcast-{os.getuid()}"
    planted = own / "gather-main" / "old" / "one" / "job-0"
    planted.mkdir(parents=True)
    (planted / "cancel").write_text(f"touch {place.scratch}/ran\n")
    own.chmod(0o777)
    run = Run(resource_of(place), datetime.now(UTC))
    with pytest.raises(ResourceUnfit, match="has mode drwxrwxrwx"):
        run.grid.scratch("one")
    assert not (place.scratch / "ran").exists()
    assert planted.exists()
    shutil.rmtree(own)
    run.clean_up()
