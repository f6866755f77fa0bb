"""The Slurm service in a real Slurm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.testbed.middleware.slurm import SlurmCluster
from reporters.remote.installation import SiteInstallation
from tests.reporters.clusters import slurm_cluster
from tests.reporters.remote.stand_in_agent import stand_in_agent
from tests.waiting import eventually

AGENT = stand_in_agent("one")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    with slurm_cluster() as running:
        monkeypatch.setenv("PATH", f"{running.programs}:{os.environ['PATH']}")
        yield running


def test_one_job_runs_the_agent_and_one_waits_until_both_are_removed(
    cluster: SlurmCluster, state: Path
) -> None:
    for _ in range(2):
        service, _ = SiteInstallation(state).install("slurm", ["--partition=short"], AGENT, os.environ)
    assert eventually(lambda: sorted(service.status().split()) and "PENDING" in service.status())
    starts = state / "starts"
    assert eventually(lambda: starts.exists() and starts.read_text() == "one\n")
    jobs = service.status().partition(": ")[2].split(", ")
    assert sorted(job.split()[1] for job in jobs) == ["PENDING", "RUNNING"]
    SiteInstallation(state).remove()
    assert cluster.jobs() == []
    assert [file.name for file in state.iterdir()] == ["starts"]
