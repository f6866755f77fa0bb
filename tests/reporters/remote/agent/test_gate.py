"""The gate of a running agent, with real files and a real run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import probes
from reporters.config import ResourceConfig
from reporters.remote.agent.gate import PolicyGate, probe_sha256
from reporters.remote.state_directory import StateDirectory
from reporters.report import from_json
from reporters.run import identity, run
from reporters.skipped import skipped
from tests.reporters.remote.policy.assignments import NOW, assignment, resource, ssh


@pytest.fixture
def gate(tmp_path: Path) -> PolicyGate:
    return PolicyGate(StateDirectory(tmp_path), load1=lambda: 3.0)


def write(tmp_path: Path, **keys: Any) -> None:
    draft = tmp_path / "draft"
    draft.write_text(json.dumps(keys))
    draft.chmod(0o600)
    draft.rename(tmp_path / "site-policy.json")


def refusal(gate: PolicyGate, **changes: Any) -> str:
    return gate.admit(assignment(**changes), gate.policy, running_runs=1, now=NOW).reason


def test_without_a_policy_every_run_is_admitted_unchanged(gate: PolicyGate) -> None:
    admission = gate.admit(assignment(), gate.policy, running_runs=99, now=NOW)
    assert (admission.assignment, admission.reason) == (assignment(), "")
    assert gate.status() == {"status": "absent", "sha256": "", "error": "", "summary": {}}


def test_the_policy_decides_with_the_state_of_the_host(gate: PolicyGate, tmp_path: Path) -> None:
    write(tmp_path, caps={"concurrent_runs": 1})
    assert refusal(gate) == "policy: at most 1 concurrent runs, 1 are running"
    write(tmp_path, caps={"load1": 2.5})
    assert refusal(gate) == "policy: load 3 at the reporter, at most 2.5 allowed"
    write(tmp_path, caps={"load1": 4})
    admitted = gate.admit(assignment(), gate.policy, running_runs=0, now=NOW).assignment
    assert admitted is not None
    assert admitted.max_load1 == 4


def test_a_probe_is_allowed_by_the_digest_that_its_reports_have(gate: PolicyGate, tmp_path: Path) -> None:
    digest = skipped(assignment(), "x").probe.sha256
    write(tmp_path, probes={"allow": [f"disk@{digest}"]})
    assert refusal(gate) == ""
    assert refusal(gate, probe="login") == "policy: the probe login is not allowed"
    assert refusal(gate, probe="gone") == "policy: the probe gone is not allowed"
    write(tmp_path, probes={"allow": [f"disk@{'0' * 64}"]})
    assert refusal(gate) == f"policy: the probe disk with the SHA-256 {digest} is not allowed"


@pytest.mark.parametrize("name", probes.names())
def test_the_digest_of_a_probe_is_that_of_its_reports(name: str) -> None:
    assert probe_sha256(name) == identity(name, probes.load(name)).sha256


@pytest.mark.parametrize("name", ["gone", "", "../run", "grid/../disk"])
def test_what_is_no_probe_has_no_digest(name: str) -> None:
    assert probe_sha256(name) == ""


def test_the_use_of_a_day_is_counted_across_restarts(gate: PolicyGate, tmp_path: Path) -> None:
    write(tmp_path, caps={"cpu_hours_per_day": 1})
    task = assignment(ResourceConfig("login", "here", str(tmp_path)), probe="noop", bindings={})
    report = run(task)
    assert refusal(gate) == ""
    gate.count(report, process_cpu_seconds=3600.0, now=NOW)
    expected = "policy: at most 1 CPU hours a day, 1.00 are used"
    assert refusal(gate) == expected
    gate.keep_counters()
    assert refusal(PolicyGate(StateDirectory(tmp_path))) == expected
    (tmp_path / "usage.json").write_text("{")
    restarted = PolicyGate(StateDirectory(tmp_path))
    assert refusal(restarted) == "policy: what the runs of this day used is unknown"
    write(tmp_path)
    assert refusal(restarted) == ""


def test_only_what_runs_have_in_scratch_counts(gate: PolicyGate, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    own = scratch / f"gridcast-{os.geteuid()}" / "series"
    own.mkdir(parents=True)
    (scratch / "other").write_bytes(b"x" * 1_000_000)
    (own / "link").symlink_to(scratch / "other")
    local = assignment(resource(scratch=str(scratch)))
    write(tmp_path, caps={"scratch_bytes": 1_000_000})
    assert gate.admit(local, gate.policy, running_runs=0, now=NOW).reason == ""
    (own / "file").write_bytes(b"x" * 1_000_000)
    assert gate.admit(local, gate.policy, running_runs=0, now=NOW).reason.startswith(
        "policy: at most 1.0 MB of scratch"
    )


def test_a_report_is_disclosed_as_the_policy_says(gate: PolicyGate, tmp_path: Path) -> None:
    task = assignment(ssh(host="login7.example.org"), probe="nagios")
    refused = skipped(task, "ssh login7: refused")
    resources = list(task.resources.values())
    assert from_json(gate.disclosed(refused, resources)) == refused
    write(tmp_path, disclosure="redacted")
    assert from_json(gate.disclosed(refused, resources)).reason.startswith("ssh host-")
    write(tmp_path, disclosure="minimal")
    assert from_json(gate.disclosed(refused, resources)).reason == ""


def test_an_unreadable_policy_stops_everything_and_tells_the_server(gate: PolicyGate, tmp_path: Path) -> None:
    write(tmp_path, caps={"load": 8})
    assert refusal(gate).startswith("policy: unreadable: line 1 column 11: expected one of the keys ")
    status = gate.status()
    assert status["status"] == "unreadable"
    assert status["error"].startswith("line 1 column 11: ")
    assert len(status["sha256"]) == 64
    assert gate.policy.disclosure == "minimal"
    document = {"hostname": "login7", "assignment": {"error": ""}, "messages": [], "policy": status}
    assert gate.disclosed_status(document, [])["policy"] == status


def test_the_hosts_of_a_run_are_redacted_among_many_resources(gate: PolicyGate, tmp_path: Path) -> None:
    write(tmp_path, disclosure="redacted")
    others = [resource(f"r{number}", address=f"other{number}.example.org") for number in range(100)]
    task = assignment(ssh(host="login7"))
    told = gate.disclosed(skipped(task, "ssh login7: no route"), [*others, *task.resources.values()])
    assert b"login7" not in told
