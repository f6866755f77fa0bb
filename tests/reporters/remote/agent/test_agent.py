"""The whole agent as a process, against a server with real HTTPS and real signatures."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.operations.supervisor.guard import descendants
from monitor.runs.fleet import signatures
from monitor.runs.fleet.enrolment import server_mark
from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity
from reporters.remote.agent.cursor import Cursor, CursorFile
from reporters.remote.agent.ownership import wake_owner
from reporters.remote.agent_process import pids
from reporters.remote.main import main
from reporters.remote.state_directory import StateDirectory
from reporters.report import rfc3339, run_id
from tests.processes import is_gone, pid_in
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import ROOT, agent_process, agent_with_clock
from tests.reporters.remote.assignments import RESOURCE, assignment, enrolled, series
from tests.reporters.remote.grid_server import GridServer, grid_server, key_of
from tests.reporters.scripted_https import Connection, Request
from tests.reporters.small_file_system import small_file_system
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


class EnrolmentDesk:
    """Enrols the key of each request, whose first answer is lost, and accepts only the last key."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def answer(self, connection: Connection, request: Request) -> bool:
        if not request.path.endswith("/enrol"):
            is_revoked = bool(self.keys) and key_of(request) != self.keys[-1]
            if is_revoked:
                connection.answer(401, b'{"code": "revoked"}')
            return is_revoked
        asked = json.loads(request.body)
        self.keys.append(signatures.parse_key(asked["method"], asked["public_key"]).fingerprint)
        key = signatures.server_public_key(asked["method"])
        document = {"reporter": "ncsa", "server_key": key, "exchange_seconds": 3600}
        if len(self.keys) > 1:
            connection.answer(200, json.dumps(document).encode())
        return True


def test_an_approved_assignment_and_a_new_key_are_followed_at_once(
    authority: Authority, state: StateDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent itself would wait for an hour: the server tells it to, and so does a revoked key."""
    (state.path / "site-policy.json").write_text('{"approval": "ask"}')
    (state.path / "site-policy.json").chmod(0o600)
    at, desk = f"--state={state.path}", EnrolmentDesk()
    server = GridServer(assignment=assignment(), refuse=desk.answer)
    server.change = lambda answer: answer.update(exchange_seconds=3600)
    with grid_server(authority, server):
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            assert eventually(lambda: len(server.exchanges) == 2), agent.log
            code, printed = command(capsys, "approve", at, "--yes")
            assert code == 0
            assert printed.endswith("version 7 is in force; the running agent follows it now\n")
            assert eventually(lambda: agent.status.get("assignment") == 7), agent.log
            again = ["enrol", server.url, f"ABCDEFGHIJ23{server_mark()}", "--force", "--proxy=none", at]
            again.append(f"--ca-file={authority.identity.certificate}")
            assert main(again) == 2
            assert wake_owner(state.path)
            assert eventually(lambda: agent.status.get("is_revoked")), agent.log
            assert main(again) == 0
            assert eventually(lambda: not agent.status.get("is_revoked")), agent.log
    assert len(desk.keys) == 2
    assert len(set(desk.keys)) == 1


@pytest.fixture
def small_state(tmp_path: Path) -> Iterator[StateDirectory]:
    """A state directory in a file system of two megabytes."""
    directory = tmp_path / "small"
    directory.mkdir()
    with small_file_system(directory, 2, mode="700"):
        yield StateDirectory.create(directory)


@pytest.mark.nightly
def test_a_disk_that_is_full_for_a_while_loses_no_requested_run(
    authority: Authority, small_state: StateDirectory
) -> None:
    on_request, wanted = assignment(series(schedule="")), [requested() for _ in range(2)]
    with grid_server(authority, GridServer(assignment=on_request)) as server:
        enrol(small_state, server, authority)
        with agent_process(small_state.path) as agent:
            assert eventually(lambda: agent.status.get("assignment")), agent.log
            ballast = small_state.path / "ballast"
            fill_disk(ballast)
            server.requests[:] = wanted[:1]
            asked = len(server.exchanges)
            assert wake_owner(small_state.path)
            assert eventually(lambda: len(server.exchanges) > asked)
            ballast.unlink()
            server.requests[:] = wanted
            assert wake_owner(small_state.path)
            runs = sorted(each["run"] for each in wanted)
            assert eventually(lambda: sorted(str(report.run) for report in server.reports) == runs), agent.log
            assert agent.stop() == 0
    assert {report.outcome for report in server.reports} <= {"passed", "broken"}


def fill_disk(file: Path) -> None:
    """Write *file* until no byte is free."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass


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
            assert eventually(lambda: pids(state.path) == [agent.process.pid])
            assert agent.stop() == 0
    (report,) = server.reports
    assert (str(report.run), report.outcome) == (wanted["run"], "passed"), agent.log + report.reason
    assert server.exchanges[-1]["assignment"] == {"version": 7, "error": ""}
    assert not list((state.path / "results").iterdir())


def command(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    status = main(argv)
    return status, capsys.readouterr().out


def test_status_and_ledger_read_what_the_agent_left(
    authority: Authority, state: StateDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    at = f"--state={state.path}"
    with grid_server(
        authority, GridServer("openssl", assignment(series(schedule="")), [requested()])
    ) as server:
        enrol(state, server, authority)
        assert command(capsys, "status", at)[0] == 3
        with agent_process(state.path) as agent:
            assert eventually(lambda: server.reports), agent.log
            assert eventually(lambda: agent.status.get("spool_records") == 0), agent.log
            code, printed = command(capsys, "status", at)
            assert code == 0
            assert f"agent        process {agent.process.pid} on " in printed
            agent.stop()
    code, printed = command(capsys, "status", at)
    assert code == 3
    assert f"reporter     ncsa at {server.url}\nagent        not running\n" in printed
    assert "assignment   7\n" in printed
    assert "spool        0 records wait" in printed
    _, printed = command(capsys, "ledger", at)
    assert f"{rfc3339(server.reports[0].slot)[:19]}Z passed" in printed
    assert "delivered noop-ncsa" in printed
    assert main(["ledger", at, "--series=another"]) == 0
    assert capsys.readouterr() == ("", "no runs of another yet\n")


@pytest.mark.parametrize("wall_error_seconds", [3600.0, -3600.0])
def test_an_agent_that_starts_without_the_server_after_a_jump_of_the_clock_has_the_servers_slots(
    authority: Authority,
    state: StateDirectory,
    capsys: pytest.CaptureFixture[str],
    wall_error_seconds: float,
) -> None:
    with grid_server(authority, GridServer("openssl", assignment())) as server:
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            assert eventually(lambda: agent.status.get("assignment") == 7), agent.log
            agent.process.kill()
            agent.process.wait()
    before = datetime.now(UTC)
    CursorFile(state).keep(Cursor(before - timedelta(seconds=61)), before)
    with agent_with_clock(state.path, wall_error_seconds) as agent:
        assert eventually(lambda: agent.status.get("spool_records")), agent.log
    slots = [line.split()[0] for line in command(capsys, "ledger", f"--state={state.path}")[1].splitlines()]
    times = [datetime.fromisoformat(slot) for slot in slots]
    assert times
    assert (
        before - timedelta(seconds=62) <= min(times) <= max(times) <= datetime.now(UTC) + timedelta(seconds=5)
    )


def test_a_second_agent_for_the_directory_is_refused(authority: Authority, state: StateDirectory) -> None:
    with grid_server(authority, GridServer()) as server:
        enrol(state, server, authority)
        with agent_process(state.path) as first:
            assert eventually(lambda: first.status), first.log
            with agent_process(state.path) as second:
                assert second.process.wait(60) == 2
            first.process.kill()
            first.process.wait()
        with agent_process(state.path) as successor:
            assert eventually(lambda: successor.log.count("runs for") == 2), "a dead agent's place is taken"


_SLEEPER = """#!/bin/sh
trap '' TERM
echo $$ > {file}.part && mv {file}.part {file}
while :; do sleep 1000; done
"""


def sleeping(tmp_path: Path, program: str = _SLEEPER) -> dict[str, Any]:
    """Return an assignment whose run, by *program*, writes a process id to the file ``pid`` and sleeps."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700, exist_ok=True)
    plugin = tmp_path / "plugin"
    plugin.write_text(program.format(file=tmp_path / "pid"))
    plugin.chmod(0o700)
    parameters = {"command": str(plugin), "timeout_seconds": 600.0}
    one = series("sleep-ncsa", probe="nagios", parameters=parameters, schedule="", limit_seconds=900.0)
    resources = {"ncsa-login": {**RESOURCE, "scratch": str(scratch)}}
    return assignment(one, resources=resources)


def test_an_agent_that_is_killed_leaves_no_process(
    authority: Authority, state: StateDirectory, tmp_path: Path
) -> None:
    wanted = requested("sleep-ncsa")
    with grid_server(authority, GridServer(assignment=sleeping(tmp_path), requests=[wanted])) as server:
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            pid = pid_in(tmp_path / "pid")
            agent.process.kill()
            assert eventually(lambda: is_gone(pid))
            assert eventually(lambda: not list((tmp_path / "scratch").rglob("*")))


# It leaves its session and its parent, and ignores SIGTERM.
_SURVIVOR = """#!/bin/sh
trap '' TERM
(setsid sh -c 'echo $$ > {file}.part && mv {file}.part {file} && exec sleep 1000' &)
exec sleep 1000
"""


def test_what_a_killed_agent_and_its_helpers_left_is_ended_when_the_agent_starts_again(
    authority: Authority, state: StateDirectory, tmp_path: Path
) -> None:
    wanted = requested("sleep-ncsa")
    on_request = sleeping(tmp_path, _SURVIVOR)
    with grid_server(authority, GridServer(assignment=on_request, requests=[wanted])) as server:
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            survivor = pid_in(tmp_path / "pid")
            family = [agent.process.pid, *descendants(agent.process.pid)]
            for number in (signal.SIGSTOP, signal.SIGKILL):  # none can end the others
                for pid in set(family) - {survivor}:
                    with contextlib.suppress(ProcessLookupError):  # the death of another has ended it
                        os.kill(pid, number)
        assert eventually(lambda: all(map(is_gone, set(family) - {survivor})))
        assert not is_gone(survivor)
        server.requests.clear()
        with agent_process(state.path) as agent:
            assert eventually(lambda: is_gone(survivor)), agent.log


def test_a_stopped_agent_ends_its_runs_and_reports_them(
    authority: Authority, state: StateDirectory, tmp_path: Path
) -> None:
    wanted = requested("sleep-ncsa")
    with grid_server(authority, GridServer(assignment=sleeping(tmp_path), requests=[wanted])) as server:
        enrol(state, server, authority)
        with agent_process(state.path) as agent:
            pid = pid_in(tmp_path / "pid")
            assert agent.stop() == 0
            assert is_gone(pid)
        (report,) = server.reports
    assert (report.outcome, report.reason) == ("skipped", "the reporter was stopped during the run")


# The clock stands for any unexpected error.
_WITH_A_FAULT = """
import sys
from pathlib import Path
from reporters.remote.agent.agent import Agent
from reporters.remote.clock import SiteClock
from reporters.remote.state_directory import StateDirectory

class BrokenClock(SiteClock):
    def server_seconds(self):
        raise RuntimeError("the clock is broken")

sys.exit(Agent(StateDirectory.open(Path(sys.argv[1])), BrokenClock(), is_quiet=True).serve())
"""


def test_an_agent_that_loses_a_thread_ends_so_that_its_service_starts_it_again(
    authority: Authority, state: StateDirectory
) -> None:
    with grid_server(authority, GridServer()) as server:
        enrol(state, server, authority)
        argv = [sys.executable, "-c", _WITH_A_FAULT, str(state.path)]
        assert subprocess.run(argv, cwd=ROOT, timeout=60, check=False).returncode == 1
    log = (state.path / "agent.log").read_text()
    assert "thread exchange: RuntimeError('the clock is broken')" in log
    assert "in server_seconds" in log, "the log has the traceback"
    assert log.endswith("stopped\n")
