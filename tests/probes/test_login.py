"""Login over real SSH sites; Batch queue with a launcher that waits or refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig
from reporters.report import Report
from tests.probes.run_clock import RunClock
from tests.probes.runs import LIMIT_SECONDS, metrics
from tests.reporters.ssh_sites import SshSites
from tests.waiting import eventually


@pytest.fixture(scope="module")
def sites() -> Iterator[SshSites]:
    with SshSites("iu") as running:
        yield running


def assignment(probe: str, resource: ResourceConfig) -> Assignment:
    return Assignment(
        series=f"{probe}-test",
        slot=datetime(2026, 3, 1, tzinfo=UTC),
        reporter="home",
        probe=probe,
        bindings={"target": [resource.name]},
        resources={resource.name: resource},
        limit_seconds=LIMIT_SECONDS,
    )


def run(probe: str, resource: ResourceConfig, **changes: Any) -> Report:
    return reporter.run(replace(assignment(probe, resource), **changes))


def passed_metrics(report: Report) -> dict[str, float]:
    assert report.outcome == "passed", report.reason
    return metrics(report)


def test_every_login_is_a_new_connection_and_a_command_is_not(sites: SshSites) -> None:
    before = sites.sites["iu"].logins
    seconds = passed_metrics(run("login", sites.resource("iu"), parameters={"logins": 2}))
    assert sites.sites["iu"].logins == before + 3  # the connection of the run, and two that are measured
    assert 0 < seconds["login.seconds"] <= seconds["login.slowest.seconds"]
    assert seconds["command.seconds"] > 0


def test_a_login_leaves_no_connection(sites: SshSites) -> None:
    run("login", sites.resource("iu"))
    connections = sites.sites["iu"].connections
    assert len(connections) >= 2
    assert eventually(lambda: all(connection.is_closed() for connection in connections))


def test_a_refused_login_names_the_resource(sites: SshSites) -> None:
    report = run("login", sites.resource("iu", host="nowhere.invalid"))
    assert report.outcome == "failed"
    assert "cannot connect to nowhere.invalid:22" in report.reason


def test_a_login_ends_at_the_time_limit_of_the_run(tmp_path: Path) -> None:
    true = tmp_path / "bin" / "true"
    true.parent.mkdir()
    true.write_text("#!/bin/sh\n")
    true.chmod(0o755)
    shell = {"kind": "local", "path": f"{true.parent}:/usr/bin:/bin"}
    clock = RunClock(LIMIT_SECONDS)

    def on_stage(stage: str) -> None:
        if stage == "login":
            true.write_text("#!/bin/sh\nexec sleep 600\n")
            clock.leave(0.5)

    resource = ResourceConfig("iu", "iu", str(tmp_path), shell=shell)
    report = reporter.run(
        assignment("login", resource), on_stage=on_stage, tools=reporter.RunnerTools(monotonic=clock)
    )
    assert (report.outcome, report.failure and report.failure.stage) == ("timed_out", "login")


def test_the_waiting_time_of_a_minimal_job_is_measured(tmp_path: Path) -> None:
    slow = {"kind": "fork", "launcher": ["sh", "-c", 'sleep 0.3; exec "$@"', "sh"]}
    seconds = passed_metrics(run("batch_queue", ResourceConfig("iu", "iu", str(tmp_path), batch=slow)))
    assert seconds["queue.seconds"] >= 0.28  # 0.3 s by the clock of the site, which counts in 0.01 s
    assert seconds["job.seconds"] >= 0


def test_a_job_that_the_batch_system_refuses_fails_in_the_queue(tmp_path: Path) -> None:
    refusing = {"kind": "fork", "launcher": ["sh", "-c", "echo 'error: invalid account' >&2; exit 1", "sh"]}
    report = run("batch_queue", ResourceConfig("iu", "iu", str(tmp_path), batch=refusing))
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "queue_wait")
    assert "invalid account" in report.reason
