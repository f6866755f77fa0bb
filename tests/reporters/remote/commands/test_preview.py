"""``preview``: the bytes on stdout are those that leave the site."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from reporters.remote import identity
from reporters.remote.agent.gate import PolicyGate
from reporters.remote.assignment_store import AUTO, AssignmentStore
from reporters.remote.main import main
from reporters.remote.state_directory import StateDirectory
from reporters.report import Report, from_json
from reporters.spool.records import parse_parts
from reporters.spool.spool import Spool
from tests.reporters.needs import needs
from tests.reporters.remote.assignments import assignment, enrolled, sign

Captured = pytest.CaptureFixture[str]


def policy(tmp_path: Path, **keys: Any) -> None:
    file = tmp_path / "site-policy.json"
    file.write_text(json.dumps(keys))
    file.chmod(0o600)


def enrol(tmp_path: Path) -> StateDirectory:
    needs("openssl")
    state = StateDirectory.open(tmp_path)
    identity.save(state, enrolled(state))
    AssignmentStore(state, identity.load(state)).offer(sign(assignment()), AUTO)
    return state


def preview(tmp_path: Path, capsys: Captured, *argv: str) -> str:
    assert main(["preview", f"--state={tmp_path}", *argv]) == 0
    return capsys.readouterr().out


def report_of(tmp_path: Path, capsys: Captured, name: str) -> Report:
    return from_json(preview(tmp_path, capsys, name, f"--scratch={tmp_path}"))


def test_a_probe_is_run_and_its_report_printed_as_it_would_be_sent(tmp_path: Path, capsys: Captured) -> None:
    report = report_of(tmp_path, capsys, "login")
    assert (report.outcome, report.environment.hostname) == ("passed", platform.node())


@pytest.mark.parametrize("level", ["redacted", "minimal"])
def test_the_report_is_disclosed_as_the_policy_says(tmp_path: Path, capsys: Captured, level: str) -> None:
    policy(tmp_path, disclosure=level)
    report = report_of(tmp_path, capsys, "login")
    assert report.outcome == "passed"
    assert report.environment.hostname != platform.node()
    assert report.environment.hostname == "" or level == "redacted"
    assert any(metric.name == "login.seconds" for metric in report.metrics)


def test_a_probe_that_the_policy_forbids_is_not_run(tmp_path: Path, capsys: Captured) -> None:
    policy(tmp_path, probes={"forbid": ["login"]})
    report = report_of(tmp_path, capsys, "login")
    assert (report.outcome, report.reason) == ("skipped", "policy: the probe login is forbidden")
    assert report.metrics == ()


def test_nothing_runs_under_an_unreadable_policy(tmp_path: Path, capsys: Captured) -> None:
    policy(tmp_path, probs={})
    report = report_of(tmp_path, capsys, "login")
    assert (report.outcome, report.reason) == ("skipped", "policy: unreadable")


def test_a_series_is_run_as_it_is_assigned(tmp_path: Path, capsys: Captured) -> None:
    enrol(tmp_path)
    report = report_of(tmp_path, capsys, "noop-ncsa")
    assert (report.series, report.reporter, report.outcome) == ("noop-ncsa", "ncsa", "passed")


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert main(["preview", f"--state={tmp_path}", "longin"]) == 2
    refused = capsys.readouterr().err
    assert "'longin' is neither a series in force here (none) nor a probe (batch_queue, " in refused


def test_without_a_name_the_requests_are_printed_and_the_spool_stays(
    tmp_path: Path, capsys: Captured
) -> None:
    state = enrol(tmp_path)
    policy(tmp_path, disclosure="redacted", approval="ask")
    spool = Spool(state.spool, "ncsa")
    spool.append(b'{"number":1}')
    before = {file: file.read_bytes() for file in state.spool.rglob("*") if file.is_file()}
    main(["preview", f"--state={tmp_path}"])
    printed = capsys.readouterr()
    exchange, _, records = printed.out.partition("\n")
    assert {file: file.read_bytes() for file in state.spool.rglob("*") if file.is_file()} == before
    assert parse_parts(records.encode()) == spool.batch()
    document = json.loads(exchange)
    assert document["spool"]["records"] == 2  # with the start of the chain
    assert document["chains"] == [
        {"chain": str(head.chain), "next": head.next, "head": head.head} for head in spool.heads()
    ]
    assert document["assignment"] == {"version": 7, "error": ""}
    assert document["policy"] == PolicyGate(state).status()
    assert platform.node() not in printed.out
    assert "/api/v1/reporters/ncsa/exchange, " in printed.err
    assert (
        f"/api/v1/reporters/ncsa/records, 2 records, compressed with gzip; {len(records)} bytes"
        in printed.err
    )


def test_a_reporter_that_is_not_enrolled_has_no_requests(tmp_path: Path, capsys: Captured) -> None:
    assert main(["preview", f"--state={tmp_path}"]) == 2
    assert "is not enrolled" in capsys.readouterr().err
