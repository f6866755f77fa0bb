"""The supervisor starts services in order and restarts them; one supervisor per directory."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from monitor.operations.supervisor import AlreadySupervised, NotUp, Service, lock, read_status
from monitor.operations.supervisor.service import backoff_seconds, start_order
from monitor.operations.supervisor.status import STATES
from monitor.operations.supervisor.watched import describe_exit
from tests.processes import is_gone, pid_in
from tests.waiting import eventually

from .observed import DEADLINE_SECONDS, Observed, running, sleeper, trying


def test_services_start_after_their_dependencies_are_up(tmp_path: Path) -> None:
    flag = tmp_path / "ready"
    database = Service(
        "database", ["sh", "-c", f"sleep 0.2; touch {flag}; exec sleep 600"], ready=flag.exists
    )
    with running(tmp_path, sleeper("web", depends_on=["database"]), database) as observed:
        started = [name for name, status in observed.statuses if status.state == "starting"]
        assert started.index("web") > started.index("database")
        database_up = observed.statuses.index(("database", observed.wait_for("database", "up")))
        assert database_up < observed.statuses.index(("web", observed.wait_for("web", "starting")))


def test_a_killed_service_is_restarted(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("worker")) as observed:
        first = observed.wait_for("worker", "up").pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        again = observed.wait_for("worker", "up", restarts=1)
        assert again.pid not in {None, first}
        assert again.last_exit == "killed by SIGKILL"


def test_processes_left_by_a_dead_service_are_killed_before_it_is_restarted(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! > helper.tmp; mv helper.tmp helper.pid; wait"
    with running(tmp_path, Service("web", ["sh", "-c", script], directory=tmp_path)) as observed:
        helper = pid_in(tmp_path / "helper.pid")
        os.kill(observed.wait_for("web", "up").pid or 0, signal.SIGKILL)
        observed.wait_for("web", "restarting")
        assert is_gone(helper)


def test_a_service_ends_with_its_killed_guard_and_is_restarted(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("worker")) as observed:
        first = observed.wait_for("worker", "up").pid or 0
        guard = int(Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        assert observed.wait_for("worker", "up", restarts=1).last_exit == "its guard was killed"
        assert eventually(lambda: is_gone(first))


def test_a_failing_service_is_restarted_with_back_off(tmp_path: Path) -> None:
    with trying(tmp_path, Service("broken", ["sh", "-c", "exit 3"], ready=lambda: False)) as observed:
        observed.wait_for("broken", "starting", restarts=2)
        with pytest.raises(NotUp, match="ended with status 3"):
            observed.supervisor.wait_until_up(0)
    ends = [status.since for _, status in observed.statuses if status.state == "restarting"]
    starts = [
        status.since
        for _, status in observed.statuses
        if status.state == "starting" and status.restarts and status.pid is None
    ]
    waits = [(start - end).total_seconds() for end, start in zip(ends, starts, strict=False)]
    assert len(waits) >= 2
    for wait, expected in zip(waits, (0.2, 0.4, 0.8), strict=False):
        assert wait >= expected - 0.01


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 0.2), (2, 0.4), (3, 0.8), (6, 6.4), (7, 10.0), (10_000, 10.0)]
)
def test_the_back_off_doubles_up_to_ten_seconds(failures: int, seconds: float) -> None:
    assert backoff_seconds(failures) == pytest.approx(seconds)


def test_a_service_that_is_never_ready_is_killed_and_restarted(tmp_path: Path) -> None:
    service = Service("unready", ["sleep", "600"], ready=lambda: False, ready_seconds=0.2)
    with trying(tmp_path, service) as observed:
        observed.wait_for("unready", "starting", restarts=1)
        with pytest.raises(NotUp, match="no progress"):
            observed.supervisor.wait_until_up(0)


def test_the_log_names_a_missing_program(tmp_path: Path) -> None:
    with trying(tmp_path, Service("typo", ["/nonexistent/program"], ready=lambda: False)) as observed:
        observed.wait_for("typo", "starting", restarts=1)
        with pytest.raises(NotUp, match="cannot start /nonexistent/program"):
            observed.supervisor.wait_until_up(0)


def test_an_exception_of_before_counts_as_a_failed_start(tmp_path: Path) -> None:
    attempts: list[int] = []

    def before() -> None:
        attempts.append(1)
        if len(attempts) < 2:
            raise RuntimeError("the disk is full")

    with running(tmp_path, Service("database", ["sleep", "600"], before=before)) as observed:
        assert observed.wait_for("database", "up").last_exit == "cannot start: the disk is full"


def test_a_once_service_is_up_when_it_has_ended(tmp_path: Path) -> None:
    migrate = Service("migrate", ["sh", "-c", "sleep 0.1; touch migrated"], directory=tmp_path, once=True)
    web = Service(
        "web", ["sh", "-c", "test -e migrated && exec sleep 600"], directory=tmp_path, depends_on=["migrate"]
    )
    with running(tmp_path, migrate, web) as observed:
        assert observed.states("migrate") == ["starting", "starting", "up"]
        assert observed.wait_for("web", "up").restarts == 0


def test_a_second_supervisor_of_a_directory_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("worker")) as first:
        second = Observed(tmp_path, sleeper("worker"))
        with pytest.raises(AlreadySupervised, match=f"process {os.getpid()} is already the supervisor"):
            second.supervisor.run()
        assert lock.holder(first.run_directory) == os.getpid()
        assert not lock.is_free(first.run_directory)
    assert lock.holder(first.run_directory) is None
    assert lock.is_free(first.run_directory)


def test_the_status_file_is_complete_at_every_moment(tmp_path: Path) -> None:
    observed = Observed(tmp_path, Service("broken", ["false"]), sleeper("fine"))
    thread = threading.Thread(target=observed.supervisor.run)
    thread.start()
    states: set[str] = set()

    def has_seen_enough() -> bool:
        document = json.loads(observed.status_file.read_text())
        assert document["pid"] == os.getpid()
        assert list(document["services"]) == ["broken", "fine"]
        states.update(service["state"] for service in document["services"].values())
        return "restarting" in observed.states("broken") and len(observed.statuses) >= 12

    try:
        assert eventually(observed.status_file.exists)
        assert eventually(has_seen_enough)
    finally:
        observed.supervisor.request_stop()
        thread.join(DEADLINE_SECONDS)
    assert states <= set(STATES)
    final = read_status(observed.status_file)
    assert final is not None
    assert {status.state for status in final.services.values()} == {"stopped"}


def test_output_goes_to_a_log_per_service(tmp_path: Path) -> None:
    talker = Service("talker", ["sh", "-c", "echo out; echo err >&2; exec sleep 600"])
    with running(tmp_path, talker):
        assert eventually(lambda: (tmp_path / "log" / "talker.log").read_text() == "out\nerr\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="requires root")
def test_a_service_runs_as_its_configured_user(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("unprivileged", user=(65534, 65534), directory=Path("/"))) as observed:
        pid = observed.wait_for("unprivileged", "up").pid
        status = Path(f"/proc/{pid}/status").read_text()
    assert "Uid:\t65534\t65534\t65534\t65534\n" in status
    assert "Groups:\t \n" in status


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ([sleeper("a"), sleeper("a")], "duplicate service names: a, a"),
        ([sleeper("a", depends_on=["b"])], "depends on b, which does not exist"),
        ([sleeper("a", depends_on=["b"]), sleeper("b", depends_on=["a"])], "depend on each other: a, b"),
    ],
)
def test_services_that_cannot_be_ordered_are_refused(services: list[Service], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        start_order(services)


@pytest.mark.parametrize(
    ("exit_status", "description"),
    [(0, "ended with status 0"), (-9, "killed by SIGKILL"), (None, "its guard was killed")],
)
def test_the_end_of_a_program_is_described(exit_status: int | None, description: str) -> None:
    assert describe_exit(exit_status) == description


def test_without_services_everything_is_up_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as observed:
        assert observed.statuses == []


def test_a_restarted_service_accepts_the_connections_that_waited_for_it(tmp_path: Path) -> None:
    serve_one = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).accept()[0].sendall(b'hello')"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        argv = [sys.executable, "-c", serve_one, str(listener.fileno())]
        with running(tmp_path, Service("greeter", argv, inherited=[listener])) as observed:
            for restarts in range(2):
                with socket.create_connection(listener.getsockname(), DEADLINE_SECONDS) as connection:
                    assert connection.recv(5) == b"hello"
                observed.wait_for("greeter", "up", restarts=restarts + 1)
