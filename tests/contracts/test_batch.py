"""The contract of batch systems, run over every file in ``reporters/batch/``."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporters import batch, shells
from reporters.base import ConnectionLost, JobFailed, SubmittedJob, TookTooLong
from reporters.registry import UnknownPlugin
from tests.reporters.clusters import batch_system, install
from tests.reporters.places import Place, two_places
from tests.reporters.small_file_system import small_file_system
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

# Seconds that a job sleeps: unique, so that its processes can be told from all others.
numbers = itertools.count(secrets.randbelow(10**9) * 1000)
# Queues do not depend on the shell; jobs that end with their session are tested with both shells.
PAIRS = [
    (kind, shell)
    for kind, shell in itertools.product(batch.names(), shells.names())
    if shell == "local" or (not batch.load(kind).survives_its_session and shell == "ssh")
]


class Cluster:
    """A batch system at a place, and a directory for jobs."""

    def __init__(self, place: Place, kind: str, jobs: list[SubmittedJob]) -> None:
        self.place, self.kind, self.jobs = place, kind, jobs
        self.directory = place.scratch / f"run-{next(numbers)}"
        self.directory.mkdir()

    def submit(self, *argv: str, wall_seconds: float = 30) -> SubmittedJob:
        system = batch.load(self.kind)(self.place.shell)
        self.jobs.append(
            system.submit(argv, directory=str(self.directory), cpus=1, wall_seconds=wall_seconds)
        )
        return self.jobs[-1]

    def sleeper(self) -> tuple[SubmittedJob, str]:
        """Submit a job that sleeps and ignores SIGTERM; return it and the name of its processes."""
        seconds = str(next(numbers))
        job = self.submit("sh", "-c", f"trap '' TERM; sleep {seconds} & sleep {seconds}; sleep {seconds}")
        job.wait_started(timeout_seconds=60)
        name = f"sleep\0{seconds}"
        assert eventually(lambda: len(processes_naming(name)) == 2)
        return job, name


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(pair, id="-".join(pair), marks=[] if pair[1] == "local" else pytest.mark.nightly)
        for pair in PAIRS
    ],
)
def cluster_place(request: pytest.FixtureRequest) -> Iterator[tuple[Place, str, list[SubmittedJob]]]:
    """Yield a place, its batch system and a list for all jobs, which are cancelled at the end."""
    kind, shell = request.param
    jobs: list[SubmittedJob] = []
    with batch_system(kind) as programs, two_places(shell) as (place, _):
        install(programs, place)
        yield place, kind, jobs
        with ThreadPoolExecutor(4) as pool:  # each cancels with one command at the site
            for cancelled in [pool.submit(job.cancel) for job in jobs]:
                cancelled.result()


@pytest.fixture
def cluster(cluster_place: tuple[Place, str, list[SubmittedJob]]) -> Cluster:
    return Cluster(*cluster_place)


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(UnknownPlugin, match=r"there is no batch system 'cloud'; known are .*fork.*slurm"):
        batch.load("cloud")


def test_a_job_runs_in_its_directory_and_reports_its_times(cluster: Cluster) -> None:
    job = cluster.submit("sh", "-c", 'sleep 0.3; pwd > "$1"', "sh", "where is it")
    assert job.wait_started(timeout_seconds=60) >= 0
    assert job.wait_ended(timeout_seconds=60) >= 0.25
    assert (cluster.directory / "where is it").read_text().strip() == str(cluster.directory)


def test_a_job_gets_its_arguments_unchanged_and_the_label_of_its_run(cluster: Cluster) -> None:
    words = ["$HOME `id`", "it's", '"', "a\nb", "*", ""]
    script = 'printf "%s|" "$@" > words; echo "$LC_GRIDCAST_RUN" > label'
    cluster.submit("sh", "-c", script, "sh", *words).wait_ended(timeout_seconds=60)
    assert (cluster.directory / "words").read_text() == "".join(f"{word}|" for word in words)
    assert (cluster.directory / "label").read_text() == f"{cluster.place.shell.label}\n"


def test_the_wait_for_the_start_returns_while_the_job_runs(cluster: Cluster) -> None:
    job = cluster.submit("sh", "-c", "until [ -e go ]; do sleep 0.01; done")
    job.wait_started(timeout_seconds=60)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait_ended, timeout_seconds=60)
        assert not waiting.done()
        (cluster.directory / "go").touch()
        assert waiting.result() >= 0


def test_a_failed_job_reports_status_and_stderr(cluster: Cluster) -> None:
    job = cluster.submit("sh", "-c", "echo reading; echo 'kernel: cannot allocate' >&2; exit 3")
    with pytest.raises(JobFailed) as raised:
        job.wait_ended(timeout_seconds=60)
    assert raised.value.message == "the job at one failed with exit status 3: kernel: cannot allocate"
    assert (raised.value.exit_status, raised.value.resource) == (3, "one")
    assert raised.value.stderr_tail == "kernel: cannot allocate\n"


def test_a_job_that_fails_on_a_full_disk_names_it(cluster: Cluster) -> None:
    script = "cat /dev/zero > filler 2> /dev/null; echo 'kernel: this is lost' >&2; exit 3"
    with small_file_system(cluster.directory, 1, mode="700"):
        job = cluster.submit("sh", "-c", script)
        with pytest.raises(JobFailed) as raised:
            job.wait_ended(timeout_seconds=60)
        assert re.fullmatch(
            rf"the job at one failed with exit status 3: cannot write to {cluster.directory}/job-\w+: "
            "No space left on device",
            raised.value.message,
        )
        (cluster.directory / "filler").unlink()
        job.cancel()


def test_a_killed_job_reports_the_signal(cluster: Cluster) -> None:
    job = cluster.submit("sh", "-c", "kill -KILL $$")
    with pytest.raises(JobFailed, match="the job at one was killed by signal 9"):
        job.wait_ended(timeout_seconds=60)


def test_a_program_that_is_missing_is_named(cluster: Cluster) -> None:
    with pytest.raises(JobFailed, match="no-such-kernel"):
        cluster.submit("./no-such-kernel").wait_ended(timeout_seconds=60)


def test_a_job_is_stopped_at_its_wall_limit(cluster: Cluster) -> None:
    job = cluster.submit("sh", "-c", "sleep 600 & wait; sleep 600", wall_seconds=0.5)
    with pytest.raises(JobFailed, match=r"the job at one exceeded its wall limit of 0.5 s"):
        job.wait_ended(timeout_seconds=60)


def test_a_directory_that_is_missing_is_refused(cluster: Cluster) -> None:
    cluster.directory = Path("/no/such/directory")
    with pytest.raises(JobFailed, match="cannot submit a job at one"):
        cluster.submit("true")


def test_waiting_has_a_limit_of_its_own_and_a_job_cancelled_then_leaves_no_process(cluster: Cluster) -> None:
    job, name = cluster.sleeper()
    with pytest.raises(TookTooLong, match=r"the job at one was not ended: waited 0.2 s"):
        job.wait_ended(timeout_seconds=0.2)
    job.cancel()
    assert eventually(lambda: not processes_naming(name))
    with pytest.raises(JobFailed):
        job.wait_ended(timeout_seconds=60)


def test_a_job_survives_a_lost_connection_if_its_batch_system_declares_so(cluster: Cluster) -> None:
    job, name = cluster.sleeper()
    cluster.place.shell.close()
    try:
        if batch.load(cluster.kind).survives_its_session:
            with pytest.raises(TookTooLong):
                job.wait_ended(timeout_seconds=0.2)
            assert len(processes_naming(name)) == 2
        else:
            assert eventually(lambda: not processes_naming(name))
            with pytest.raises((ConnectionLost, JobFailed)):
                job.wait_ended(timeout_seconds=60)
    finally:
        cluster.place.shell.connect(timeout_seconds=60)
    job.cancel()


def test_a_job_cancelled_at_once_does_not_run_on(cluster: Cluster) -> None:
    seconds = str(next(numbers))
    job = cluster.submit("sh", "-c", f"sleep {seconds}; touch ran")
    job.cancel()
    with pytest.raises(JobFailed):
        job.wait_ended(timeout_seconds=60)
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))
    assert not (cluster.directory / "ran").exists()


def test_waiting_again_gives_the_same_answers_and_cancelling_an_ended_job_does_nothing(
    cluster: Cluster,
) -> None:
    job = cluster.submit("true")
    ended = job.wait_ended(timeout_seconds=60)
    assert job.wait_started(timeout_seconds=60) == job.wait_started(timeout_seconds=60)
    assert job.wait_ended(timeout_seconds=60) == ended
    job.cancel()
    job.cancel()
    assert job.wait_ended(timeout_seconds=60) == ended


def test_background_processes_end_with_their_job(cluster: Cluster) -> None:
    seconds = str(next(numbers))
    cluster.submit("sh", "-c", f"sleep {seconds} &").wait_ended(timeout_seconds=60)
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))


def test_two_jobs_do_not_disturb_each_other(cluster: Cluster) -> None:
    jobs = [cluster.submit("sh", "-c", f"echo {n} > {n}") for n in range(2)]
    for job in jobs:
        job.wait_ended(timeout_seconds=60)
    assert [(cluster.directory / str(n)).read_text() for n in range(2)] == ["0\n", "1\n"]
