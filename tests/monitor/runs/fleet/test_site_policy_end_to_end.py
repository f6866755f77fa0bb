"""The site policy of a real agent, as far as the depot: refusals, disclosure and approval arrive."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from monitor.models import RawReport, Reporter, ReporterStatus, Run
from monitor.models.reporter import PolicyStatus
from monitor.models.run import PENDING, State
from tests.monitor.runs.fleet.archive_agents import command, enrol, request_runs
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import agent_process
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def state(live_server: LiveServer, reporter: Reporter, pyz: Path, tmp_path: Path) -> Path:
    """Return the state directory of an enrolled agent."""
    needs("openssl")
    enrol(pyz, live_server.url, reporter, tmp_path / "state")
    return tmp_path / "state"


def policy(state: Path, **keys: Any) -> None:
    file = state / "site-policy.json"
    file.write_text(json.dumps(keys))
    file.chmod(0o600)


def assign(pyz: Path, state: Path) -> None:
    """Have the agent take its first assignment, which a strict policy refuses."""
    with agent_process(state, pyz) as agent:
        assert eventually(lambda: ReporterStatus.objects.filter(assignment_version__gt=0).exists()), agent.log
        assert agent.stop() == 0


def outcomes(pyz: Path, state: Path) -> dict[str, tuple[str, str]]:
    """Have the agent run everything that is requested; return state and reason by series."""
    with agent_process(state, pyz) as agent:
        assert eventually(lambda: not Run.objects.filter(state__in=PENDING).exists()), agent.log
        assert agent.stop() == 0
    return {run.series.name: (run.state, run.reason) for run in Run.objects.select_related("series")}


def test_the_slot_of_a_forbidden_probe_arrives_as_skipped_with_the_rule(pyz: Path, state: Path) -> None:
    policy(state, probes={"forbid": ["login"]}, caps={"load1": 10_000})
    request_runs()
    found = outcomes(pyz, state)
    assert found["noop-ncsa"][0] == State.PASSED
    assert found["login-ncsa"] == (State.SKIPPED, "policy: the probe login is forbidden")
    status = ReporterStatus.objects.get()
    assert (status.policy_status, status.policy_error) == (PolicyStatus.IN_FORCE, "")
    assert status.policy_summary["rules"] == {"probes": {"forbid": ["login"]}, "caps": {"load1": 10_000}}


@pytest.mark.nightly
def test_a_scratch_outside_the_allowed_ones_is_refused(pyz: Path, state: Path) -> None:
    policy(state, scratch={"allow": ["/scratch/only"]})
    request_runs()
    for run_state, reason in outcomes(pyz, state).values():
        assert run_state == State.SKIPPED
        assert reason.startswith("policy: the scratch directory '/")
        assert reason.endswith(" of ncsa-login is not allowed")


def test_under_an_unreadable_policy_nothing_runs_and_the_server_knows(pyz: Path, state: Path) -> None:
    assign(pyz, state)
    policy(state, probs={"forbid": ["login"]}, comment="a secret")
    request_runs()
    assert set(outcomes(pyz, state).values()) == {(State.SKIPPED, "policy: unreadable")}
    status = ReporterStatus.objects.get()
    assert status.policy_status == PolicyStatus.UNREADABLE
    assert status.policy_error.startswith("line 1 column 2: expected one of the keys ")
    assert "secret" not in json.dumps(status.policy_summary) + status.policy_error


@pytest.mark.nightly
def test_a_minimal_disclosure_keeps_names_of_the_site_out_of_the_depot(pyz: Path, state: Path) -> None:
    policy(state, disclosure="minimal")
    request_runs()
    assert {run_state for run_state, _ in outcomes(pyz, state).values()} == {State.PASSED}
    for stored in RawReport.objects.all():
        assert platform.node() not in stored.body.decode()
        assert (stored.parsed().log, stored.parsed().environment.python) == ((), "")
    metrics = {metric.name for stored in RawReport.objects.all() for metric in stored.parsed().metrics}
    assert "login.seconds" in metrics
    assert ReporterStatus.objects.get().hostname.startswith("host-")


def test_an_assignment_waits_for_the_approval_of_the_site(pyz: Path, state: Path) -> None:
    policy(state, approval="ask")
    request_runs()
    with agent_process(state, pyz) as agent:
        assert eventually(lambda: ReporterStatus.objects.filter(pending_approvals=1).exists()), agent.log
        assert ReporterStatus.objects.get().assignment_version == 0
        assert agent.stop() == 0
    assert {run.state for run in Run.objects.all()} <= set(PENDING)
    done = command(pyz, state, "approve", "--yes")
    assert done.returncode == 0, done.stderr
    assert "+ series login-ncsa" in done.stdout
    assert {run_state for run_state, _ in outcomes(pyz, state).values()} == {State.PASSED}
    assert ReporterStatus.objects.get().pending_approvals == 0
