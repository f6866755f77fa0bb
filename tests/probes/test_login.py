"""Login over real SSH sites and a directory of this host; a minimal job in a queue."""

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
from tests.reporters.ssh_sites import SshSites
from tests.waiting import eventually


@pytest.fixture(scope="module")
def sites() -> Iterator[SshSites]:
    with SshSites("iu") as running:
        yield running


def run(probe: str, resource: ResourceConfig, **changes: Any) -> Report:
    assignment = Assignment(
        series=f"{probe}-test",
        slot=datetime(2026, 3, 1, tzinfo=UTC),
        reporter="home",
        probe=probe,
        bindings={"target": [resource.name]},
        resources={resource.name: resource},
        limit_seconds=30.0,
    )
    return reporter.run(replace(assignment, **changes))


def measured(report: Report) -> dict[str, float]:
    assert report.outcome == "passed", report.reason
    return {metric.name: metric.value for metric in report.metrics}


def test_every_login_is_a_new_one_and_a_command_is_none(sites: SshSites) -> None:
    before = sites.sites["iu"].logins
    seconds = measured(run("login", sites.resource("iu"), parameters={"logins": 2}))
    assert sites.sites["iu"].logins == before + 3  # the run's own, and two that are measured
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


def test_a_login_ends_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "true").write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/once ] && exec sleep 600\n: > {tmp_path}/once\n"
    )
    (tmp_path / "bin" / "true").chmod(0o755)
    shell = {"kind": "local", "path": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    report = run("login", ResourceConfig("iu", "iu", str(tmp_path), shell=shell), limit_seconds=1.0)
    assert (report.outcome, report.failure and report.failure.stage) == ("timed_out", "login")


def test_a_minimal_job_says_how_long_it_was_queued(tmp_path: Path) -> None:
    slow = {"kind": "fork", "launcher": ["sh", "-c", 'sleep 0.3; exec "$@"', "sh"]}
    seconds = measured(run("batch_queue", ResourceConfig("iu", "iu", str(tmp_path), batch=slow)))
    assert seconds["queue.seconds"] >= 0.28  # the clock of a site has hundredths
    assert seconds["job.seconds"] < 30


def test_a_job_that_the_batch_system_refuses_fails_in_the_queue(tmp_path: Path) -> None:
    refusing = {"kind": "fork", "launcher": ["sh", "-c", "echo 'error: invalid account' >&2; exit 1", "sh"]}
    report = run("batch_queue", ResourceConfig("iu", "iu", str(tmp_path), batch=refusing))
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "queue_wait")
    assert "invalid account" in report.reason
