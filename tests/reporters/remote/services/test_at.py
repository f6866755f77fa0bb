"""The service of at jobs with a real at and a real atd."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reporters.remote import agent_process
from reporters.remote.installation import SiteInstallation
from tests.reporters.remote.services.site_programs import install_cron_programs
from tests.reporters.remote.stand_in_agent import stand_in_agent
from tests.waiting import eventually


def jobs() -> list[str]:
    return subprocess.run(["atq"], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = install_cron_programs(tmp_path, "at", "atq", "atrm", "atd")
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return directory


def test_one_job_waits_and_the_jobs_of_others_stay(path: Path, state: Path) -> None:
    subprocess.run(["at", "now", "+", "1", "day"], input=b"true\n", check=True, capture_output=True)
    (other,) = jobs()
    for _ in range(2):
        SiteInstallation(state).install("at", [], stand_in_agent("one"), os.environ)
    assert len(jobs()) == 2
    assert eventually((state / "starts").exists)
    SiteInstallation(state).remove()
    assert jobs() == [other]
    assert agent_process.pids(state) == []


def test_a_job_that_runs_starts_the_agent_and_submits_one_successor(path: Path, state: Path) -> None:
    service, _ = SiteInstallation(state).install("at", [], stand_in_agent("one"), os.environ)
    assert eventually((state / "starts").exists)
    agent_process.stop(state)
    subprocess.run(["atrm", jobs()[0].split()[0]], check=True)
    subprocess.run(["at", "-f", str(state / "job"), "now"], check=True, capture_output=True)
    with subprocess.Popen([path / "atd", "-f", "-l", "100"]) as atd:
        try:
            assert eventually(lambda: (state / "starts").read_text() == "one\none\n")
            assert service.status().startswith("1 waiting job of at, the agent is process ")
        finally:
            atd.kill()
    SiteInstallation(state).remove()
