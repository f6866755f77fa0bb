"""The agent of the archive on every supported Python: its runs, a kill, and the next start."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity
from reporters.remote.state_directory import StateDirectory
from reporters.report import rfc3339, run_id
from tests.by_night import by_night
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import AgentProcess, agent_process
from tests.reporters.remote.assignments import RESOURCE, assignment, enrolled, series
from tests.reporters.remote.grid_server import GridServer, grid_server
from tests.reporters.remote.interpreters import SUPPORTED, interpreter
from tests.waiting import eventually

OLDEST, *LATER = SUPPORTED
ON_REQUEST, EVERY_MINUTE = "login-ncsa", "noop-ncsa"


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.create(tmp_path / "state")


@pytest.fixture
def server(tmp_path: Path, state: StateDirectory) -> Iterator[GridServer]:
    """The server of the enrolled reporter."""
    needs("openssl", "ssh-keygen")
    (tmp_path / "scratch").mkdir(mode=0o700)
    resource = {**RESOURCE, "scratch": str(tmp_path / "scratch")}
    each = (series(EVERY_MINUTE), series(ON_REQUEST, probe="login", schedule=""))
    authority = Authority.create(tmp_path / "authority")
    with grid_server(
        authority, GridServer(assignment=assignment(*each, resources={"ncsa-login": resource}))
    ) as server:
        ca_file = str(authority.identity.certificate)
        identity.save(state, enrolled(state, url=server.url, ca_file=ca_file))
        yield server


def ask(server: GridServer, runs: int) -> None:
    now = datetime.now(UTC)
    slots = [now - timedelta(milliseconds=number) for number in range(runs)]
    expires_at = rfc3339(now + timedelta(minutes=10))
    server.requests[:] = [
        {
            "run": str(run_id(ON_REQUEST, slot)),
            "series": ON_REQUEST,
            "slot": rfc3339(slot),
            "expires_at": expires_at,
        }
        for slot in slots
    ]


def delivered(server: GridServer, agent: AgentProcess, series: str, runs: int) -> None:
    def count() -> int:
        return sum(report.series == series for report in server.reports)

    assert eventually(lambda: count() >= runs, within_seconds=60.0 + 90.0 * runs), agent.log


def check(server: GridServer, version: str) -> None:
    """Every report is of this Python and passed, every chain is complete, and nothing went wrong."""
    for report in server.reports:
        assert report.outcome == "passed", report
        assert report.environment.python.startswith(f"{version}.")
    runs = [report.run for report in server.reports]
    assert len(runs) == len(set(runs))
    for chain in {chain for chain, _ in server.records}:
        numbers = sorted(sequence for each, sequence in server.records if each == chain)
        assert numbers == list(range(len(numbers)))
    assert not [text for text in server.messages if "error" in text or "cannot" in text]


@pytest.mark.parametrize("version", [OLDEST, *map(by_night, LATER)])
def test_the_agent_runs_is_killed_and_continues(
    version: str, pyz: Path, state: StateDirectory, server: GridServer
) -> None:
    python = interpreter(version)
    ask(server, 3)
    with agent_process(state.path, pyz, python=python) as agent:
        delivered(server, agent, ON_REQUEST, 3)
    ask(server, 2)
    with agent_process(state.path, pyz, python=python) as agent:
        delivered(server, agent, ON_REQUEST, 5)
        assert agent.stop() == 0
    check(server, version)


@pytest.mark.nightly
@pytest.mark.parametrize("version", [OLDEST, LATER[-2], LATER[-1]])
def test_the_agent_runs_slot_after_slot(
    version: str, pyz: Path, state: StateDirectory, server: GridServer
) -> None:
    with agent_process(state.path, pyz, python=interpreter(version)) as agent:
        delivered(server, agent, EVERY_MINUTE, 4)
        assert agent.stop() == 0
    slots = sorted(report.slot for report in server.reports)
    steps = {after - before for before, after in itertools.pairwise(slots)}
    assert steps == {timedelta(minutes=1)}
    check(server, version)
