"""Failures in queues other than Slurm: jobs refused, held, cancelled by others, killed at a limit."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from probes.base import InvalidParameters
from reporters.base import JobFailed, JobStuck, SubmittedJob
from reporters.batch import gridengine, htcondor, pbs, slurm
from reporters.jobfiles import cancel_script
from reporters.queueing import QueueingSystem
from tests.reporters.clusters import gridengine_cell, install
from tests.reporters.places import Place, two_places
from tests.reporters.stand_ins import Condor, OpenPbs, StandIn, served

numbers = itertools.count()


def submit(system: QueueingSystem, place: Place, *argv: str, wall_seconds: float = 30.0) -> SubmittedJob:
    directory = place.scratch / f"run-{next(numbers)}"
    directory.mkdir()
    return system.submit(argv, directory=str(directory), cpus=1, wall_seconds=wall_seconds)


@pytest.fixture(params=[(OpenPbs, pbs.Batch), (Condor, htcondor.Batch)], ids=["pbs", "htcondor"])
def scripted(request: pytest.FixtureRequest) -> Iterator[tuple[StandIn, QueueingSystem, Place]]:
    maker, batch = request.param
    stand_in = maker()
    with served(stand_in) as programs, two_places("local") as (place, _):
        install(programs, place)
        yield stand_in, batch(place.shell), place


Scripted = tuple[StandIn, QueueingSystem, Place]


def test_a_refusal_is_quoted(scripted: Scripted) -> None:
    stand_in, system, place = scripted
    stand_in.refuse = "qsub: Job violates queue and/or server resource limits"
    with pytest.raises(JobFailed) as raised:
        submit(system, place, "true")
    assert raised.value.message.startswith("the job at one was refused: ")
    assert stand_in.refuse in raised.value.message


def test_a_held_job_waits_with_its_reason_and_runs_after_its_release(scripted: Scripted) -> None:
    stand_in, system, place = scripted
    stand_in.hold = True
    job = submit(system, place, "true")
    with pytest.raises(JobStuck, match=r"the job at one was not started: waited 0.2 s for it; it is held"):
        job.wait_started(timeout_seconds=0.2)
    stand_in.release()
    assert job.wait_started(timeout_seconds=60) > 0.1
    assert job.wait_ended(timeout_seconds=60) >= 0


@pytest.mark.nightly
def test_a_job_removed_by_another_user_is_reported_as_cancelled(scripted: Scripted) -> None:
    stand_in, system, place = scripted
    job = submit(system, place, "sleep", "600")
    job.wait_started(timeout_seconds=60)
    stand_in.remove(stand_in.jobs[1])
    with pytest.raises(JobFailed, match="the job at one was cancelled: "):
        job.wait_ended(timeout_seconds=60)


@pytest.mark.nightly
def test_a_job_in_the_queue_is_gone_when_it_is_cancelled(scripted: Scripted) -> None:
    stand_in, system, place = scripted
    stand_in.hold = True
    job = submit(system, place, "touch", str(place.scratch / "ran"))
    job.cancel()
    with pytest.raises(JobFailed):
        job.wait_started(timeout_seconds=60)
    assert not (place.scratch / "ran").exists()


def test_a_running_epilog_does_not_delay_the_cancellation(tmp_path: Path) -> None:
    programs, job = tmp_path / "bin", tmp_path / "job-1"
    for directory in (programs, job):
        directory.mkdir()
    # A job that is COMPLETING is listed unless the states are named.
    (programs / "squeue").write_text("#!/bin/sh\ncase $* in *' -t '*) ;; *) echo 7 ;; esac\n")
    (programs / "squeue").chmod(0o755)
    cancel = job / "cancel"
    cancel.write_text(cancel_script("gc-1", slurm.LISTING, slurm.REMOVING))
    (job / "ended").write_text("12.5 0\n")
    path = f"{programs}:{os.environ['PATH']}"
    subprocess.run(["sh", cancel], env={"PATH": path}, timeout=60, check=True)
    assert not cancel.exists()


@pytest.mark.parametrize("kind", [gridengine, htcondor, pbs, slurm])
def test_an_account_that_is_more_than_a_name_is_refused(kind: ModuleType) -> None:
    with two_places("local") as (place, _):
        for account, why in (("a\nexecutable = /bin/evil", "not one line"), ("-x", "taken for an option")):
            with pytest.raises(InvalidParameters, match=f"resource one: batch: .* {why}|is {why}"):
                kind.Batch(place.shell, account=account)


@pytest.fixture(scope="module")
def grid_engine() -> Iterator[Place]:
    with gridengine_cell() as cell, two_places("local") as (place, _):
        install(cell.programs, place)
        yield place


def test_grid_engine_refuses_a_queue_that_does_not_exist(grid_engine: Place) -> None:
    with pytest.raises(JobFailed, match=r'the job at one was refused: .*unknown queue "nosuch.q"'):
        submit(gridengine.Batch(grid_engine.shell, queue="nosuch.q"), grid_engine, "true")


def test_a_job_held_by_grid_engine_waits_with_its_reason(grid_engine: Place) -> None:
    job = submit(gridengine.Batch(grid_engine.shell, extra=["-h"]), grid_engine, "true")
    with pytest.raises(JobStuck, match="it is waiting"):
        job.wait_started(timeout_seconds=0.5)
    job.cancel()


@pytest.mark.nightly
def test_an_unwritable_output_of_grid_engine_is_reported(grid_engine: Place) -> None:
    job = submit(gridengine.Batch(grid_engine.shell, extra=["-o", "/no/such/place"]), grid_engine, "true")
    with pytest.raises(JobStuck, match=r"it is in error .*can't open output file"):
        job.wait_started(timeout_seconds=3.0)
    job.cancel()


@pytest.mark.nightly
def test_a_job_killed_by_grid_engine_at_its_limit_exceeded_it(grid_engine: Place) -> None:
    system = gridengine.Batch(grid_engine.shell, extra=["-l", "h_rt=1"])
    job = submit(system, grid_engine, "sleep", "600", wall_seconds=60.0)
    with pytest.raises(JobFailed, match="the job at one exceeded its wall limit of 60 s"):
        job.wait_ended(timeout_seconds=60)
    job.cancel()
