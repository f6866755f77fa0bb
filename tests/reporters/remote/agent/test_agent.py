"""The whole agent as a process, against a server with real HTTPS and real signatures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity
from reporters.remote.state_directory import StateDirectory
from reporters.report import rfc3339, run_id
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import agent_process
from tests.reporters.remote.assignments import assignment, enrolled, series
from tests.reporters.remote.grid_server import GridServer, grid_server
from tests.waiting import eventually


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl", "ssh-keygen")
    return Authority.create(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.create(tmp_path / "state")


def enrol(state: StateDirectory, server: GridServer, authority: Authority) -> None:
    ca_file = str(authority.identity.certificate)
    identity.save(state, enrolled(state, server.method, url=server.url, ca_file=ca_file))


def requested(name: str = "noop-ncsa", slot: datetime | None = None) -> dict[str, str]:
    slot = slot or datetime.now(UTC)
    expires_at = rfc3339(slot + timedelta(minutes=10))
    return {"run": str(run_id(name, slot)), "series": name, "slot": rfc3339(slot), "expires_at": expires_at}


@pytest.mark.parametrize("approval", ["ask", "frozen"])
def test_an_assignment_that_is_not_in_force_is_told_once_and_not_asked_for_again(
    authority: Authority, state: StateDirectory, approval: str
) -> None:
    """The server offers it with every exchange; that is no reason for another exchange."""
    policy = state.path / "site-policy.json"
    policy.write_text(f'{{"approval": "{approval}"}}')
    policy.chmod(0o600)
    server = GridServer("openssl", assignment(), change=lambda answer: answer.update(exchange_seconds=3600))
    with grid_server(authority, server):
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            assert eventually(lambda: len(server.exchanges) > 1), agent.log
            assert agent.stop() == 0
    assert len(server.exchanges) == 3, "at the start, to tell, and at the stop"
    told = server.exchanges[1]
    assert told["assignment"]["version"] == 0
    assert told["pending_approvals"] == (approval == "ask")
    assert ("accepts no changes (frozen)" in told["assignment"]["error"]) == (approval == "frozen")


@pytest.mark.parametrize("method", ["openssl", "ssh"])
def test_a_requested_run_is_run_reported_and_acknowledged(
    authority: Authority, state: StateDirectory, method: str
) -> None:
    wanted = requested()
    on_request = assignment(series(schedule=""))
    with grid_server(authority, GridServer(method, on_request, [wanted])) as server:
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            assert eventually(lambda: server.reports), agent.log
            assert eventually(lambda: agent.status.get("spool_records") == 0), agent.log
            assert agent.stop() == 0
    (report,) = server.reports
    assert (str(report.run), report.outcome) == (wanted["run"], "passed"), agent.log + report.reason
    assert server.exchanges[-1]["assignment"] == {"version": 7, "error": ""}
    assert not list((state.path / "results").iterdir())
