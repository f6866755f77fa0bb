"""The supervisor stops services in reverse order and leaves no process, also if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitor.operations.supervisor import Service, read_status
from tests.processes import is_gone, pid_in
from tests.waiting import eventually

from .observed import DEADLINE_SECONDS, Observed, running, sleeper

ROOT = Path(__file__).resolve().parents[4]

# Ignores SIGTERM and starts a daemon (double fork, own session) that ignores it too; writes the daemon's pid.
STUBBORN = """
trap '' TERM INT HUP
(setsid sh -c 'echo $$ > daemon.tmp; mv daemon.tmp daemon.pid; exec sleep 600' &)
sleep 600
sleep 600
"""


def test_services_stop_in_reverse_order(tmp_path: Path) -> None:
    with running(
        tmp_path,
        sleeper("database"),
        sleeper("worker", depends_on=["database"]),
        sleeper("web", depends_on=["worker"]),
    ) as observed:
        pass
    stops = [name for name, status in observed.statuses if status.state in {"stopping", "stopped"}]
    assert stops == ["web", "web", "worker", "worker", "database", "database"]


def test_each_service_is_stopped_with_its_own_signal(tmp_path: Path) -> None:
    script = "trap 'echo interrupted > how; exit' INT; touch listening; while :; do sleep 0.05; done"
    service = Service(
        "database",
        ["sh", "-c", script],
        directory=tmp_path,
        ready=(tmp_path / "listening").exists,
        stop_signal=signal.SIGINT,
    )
    with running(tmp_path, service):
        pass
    assert (tmp_path / "how").read_text() == "interrupted\n"


def test_a_daemon_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    service = Service("stubborn", ["sh", "-c", STUBBORN], directory=tmp_path, grace_seconds=0.3)
    with running(tmp_path, service) as observed:
        daemon = pid_in(tmp_path / "daemon.pid")
        assert os.getsid(daemon) != os.getsid(observed.wait_for("stubborn", "up").pid or 0)
    assert is_gone(daemon)
    assert observed.wait_for("stubborn", "stopped").last_exit == "killed by SIGKILL"


def test_a_second_stop_request_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    service = Service("stubborn", ["sh", "-c", STUBBORN], directory=tmp_path, grace_seconds=600.0)
    with running(tmp_path, service) as observed:
        daemon = pid_in(tmp_path / "daemon.pid")
        observed.supervisor.request_stop()
        observed.wait_for("stubborn", "stopping")
    assert is_gone(daemon)


def test_a_service_that_waits_for_its_restart_stops_at_once(tmp_path: Path) -> None:
    observed = Observed(tmp_path, Service("broken", ["false"]))
    thread = threading.Thread(target=observed.supervisor.run)
    thread.start()
    try:
        observed.wait_for("broken", "restarting", restarts=3)
    finally:
        observed.supervisor.request_stop()
        thread.join(DEADLINE_SECONDS)
    assert observed.states("broken")[-1] == "stopped"


SUPERVISE = """
    import sys
    from pathlib import Path
    from monitor.operations.supervisor import Service, Supervisor
    directory = Path(sys.argv[1])
    grace_seconds = float(sys.argv[3])
    Supervisor(
        [
            Service("stubborn", ["sh", "-c", sys.argv[2]], directory=directory, grace_seconds=grace_seconds),
            Service("plain", ["sleep", "600"], depends_on=["stubborn"]),
        ],
        status_file=directory / "run" / "supervisor.json",
        log_dir=directory / "log",
    ).in_foreground()
"""


@contextmanager
def foreground(directory: Path, grace_seconds: float) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Run a supervisor in a process of its own; yields it with the pids of all that it started."""
    argv = [sys.executable, "-c", textwrap.dedent(SUPERVISE), str(directory), STUBBORN, str(grace_seconds)]
    with subprocess.Popen(argv, cwd=ROOT) as process:
        try:
            assert eventually(lambda: is_everything_up(directory))
            status = read_status(directory / "run" / "supervisor.json")
            assert status is not None
            pids = [service.pid or 0 for service in status.services.values()]
            yield process, [*pids, pid_in(directory / "daemon.pid")]
        finally:
            process.kill()


def is_everything_up(directory: Path) -> bool:
    status = read_status(directory / "run" / "supervisor.json")
    return status is not None and all(service.state == "up" for service in status.services.values())


def test_a_killed_supervisor_leaves_no_process(tmp_path: Path) -> None:
    with foreground(tmp_path, grace_seconds=0.2) as (process, pids):
        assert not any(is_gone(pid) for pid in pids)
        process.kill()
        assert eventually(lambda: all(is_gone(pid) for pid in pids))


def test_a_new_supervisor_waits_until_the_services_of_a_killed_one_have_ended(tmp_path: Path) -> None:
    with foreground(tmp_path, grace_seconds=0.5) as (process, pids):
        process.kill()
        process.wait()
        with running(tmp_path, sleeper("next")):
            assert all(is_gone(pid) for pid in pids)


def test_ctrl_c_stops_everything_and_a_second_one_kills(tmp_path: Path) -> None:
    with foreground(tmp_path, grace_seconds=600.0) as (process, pids):
        process.send_signal(signal.SIGINT)
        assert eventually(lambda: state_of(tmp_path, "stubborn") == "stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 0
        assert all(is_gone(pid) for pid in pids)


def state_of(directory: Path, name: str) -> str:
    status = read_status(directory / "run" / "supervisor.json")
    return "" if status is None else status.services[name].state
