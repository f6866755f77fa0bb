"""The supervisor, with real processes that die, hang, fork away and refuse to go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.supervisor import AlreadySupervised, NotUp, Service, Supervisor, lock, read_status
from monitor.testbed.supervisor.service import backoff_seconds, start_order
from monitor.testbed.supervisor.status import STATES, ServiceStatus
from monitor.testbed.supervisor.watched import describe_exit

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 20.0

# Starts a daemon (double fork, own session) that, like itself, ignores SIGTERM; writes the daemon's pid.
STUBBORN = """
trap '' TERM INT HUP
(setsid sh -c 'echo $$ > daemon.tmp; mv daemon.tmp daemon.pid; exec sleep 600' &)
sleep 600
sleep 600
"""


def sleeper(name: str, **more: Any) -> Service:
    return Service(name, ["sleep", "600"], **more)


class Observed:
    """A supervisor at work in a thread, and every status that it gave."""

    def __init__(self, directory: Path, *services: Service) -> None:
        self.run_directory = directory / "run"
        self.status_file = self.run_directory / "supervisor.json"
        self.said: list[tuple[str, ServiceStatus]] = []
        self._news = threading.Condition()
        self.supervisor = Supervisor(
            services, status_file=self.status_file, log_dir=directory / "log", on_change=self._listen
        )

    def _listen(self, name: str, status: ServiceStatus) -> None:
        with self._news:
            self.said.append((name, status))
            self._news.notify_all()

    def wait_for(self, name: str, state: str, *, restarts: int = 0) -> ServiceStatus:
        """The first status of *name* in *state* with at least *restarts* restarts and, when up, a pid."""
        with self._news:
            assert self._news.wait_for(lambda: self._find(name, state, restarts), PATIENCE_SECONDS), self.said
            found = self._find(name, state, restarts)
            assert found is not None
            return found

    def _find(self, name: str, state: str, restarts: int) -> ServiceStatus | None:
        for each, status in self.said:
            if (each, status.state) == (name, state) and status.restarts >= restarts:
                return status
        return None

    def states(self, name: str) -> list[str]:
        return [status.state for each, status in self.said if each == name]


@contextmanager
def running(directory: Path, *services: Service) -> Iterator[Observed]:
    observed = Observed(directory, *services)
    with observed.supervisor.running(up_within_seconds=PATIENCE_SECONDS):
        yield observed


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether *pid* has ended; whether anybody has collected its status is not its business."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pid_in(file: Path) -> int:
    wait_until(file.exists)
    return int(file.read_text())


def test_services_start_after_what_they_depend_on_is_ready(tmp_path: Path) -> None:
    flag = tmp_path / "ready"
    database = Service(
        "database", ["sh", "-c", f"sleep 0.2; touch {flag}; exec sleep 600"], ready=flag.exists
    )
    with running(tmp_path, sleeper("web", depends_on=["database"]), database) as observed:
        began = [name for name, status in observed.said if status.state == "starting"]
        assert began.index("web") > began.index("database")
        database_up = observed.said.index(("database", observed.wait_for("database", "up")))
        assert database_up < observed.said.index(("web", observed.wait_for("web", "starting")))


def test_a_service_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("worker")) as observed:
        first = observed.wait_for("worker", "up").pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        again = observed.wait_for("worker", "up", restarts=1)
        assert again.pid not in {None, first}
        assert again.last_exit == "killed by SIGKILL"


def test_what_a_dead_service_leaves_running_is_killed_before_it_is_started_again(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! > helper.tmp; mv helper.tmp helper.pid; wait"
    with running(tmp_path, Service("web", ["sh", "-c", script], directory=tmp_path)) as observed:
        helper = pid_in(tmp_path / "helper.pid")
        os.kill(observed.wait_for("web", "up").pid or 0, signal.SIGKILL)
        observed.wait_for("web", "restarting")
        assert is_gone(helper)


def test_a_service_whose_guard_is_killed_dies_with_it_and_is_started_again(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("worker")) as observed:
        first = observed.wait_for("worker", "up").pid or 0
        guard = int(Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        assert observed.wait_for("worker", "up", restarts=1).last_exit == "its guard was killed"
        wait_until(lambda: is_gone(first))


def test_a_service_that_keeps_failing_is_tried_less_and_less_often(tmp_path: Path) -> None:
    observed = Observed(tmp_path, Service("broken", ["sh", "-c", "exit 3"], ready=lambda: False))
    with (
        pytest.raises(NotUp, match="ended with status 3"),
        observed.supervisor.running(up_within_seconds=1.2),
    ):
        pass
    ended = [status.since for _, status in observed.said if status.state == "restarting"]
    began = [
        status.since
        for _, status in observed.said
        if status.state == "starting" and status.restarts and status.pid is None
    ]
    waits = [(start - end).total_seconds() for end, start in zip(ended, began, strict=False)]
    assert len(waits) >= 2
    for wait, expected in zip(waits, (0.2, 0.4, 0.8), strict=False):
        assert wait >= expected - 0.01


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 0.2), (2, 0.4), (3, 0.8), (6, 6.4), (7, 10.0), (10_000, 10.0)]
)
def test_the_back_off_doubles_up_to_ten_seconds(failures: int, seconds: float) -> None:
    assert backoff_seconds(failures) == pytest.approx(seconds)


def test_a_service_that_is_never_ready_is_killed_and_started_again(tmp_path: Path) -> None:
    service = Service("deaf", ["sleep", "600"], ready=lambda: False, ready_seconds=0.2)
    observed = Observed(tmp_path, service)
    with (
        pytest.raises(NotUp, match="not ready after"),
        observed.supervisor.running(up_within_seconds=0.6),
    ):
        pass


def test_a_program_that_does_not_exist_is_named_in_its_log(tmp_path: Path) -> None:
    observed = Observed(tmp_path, Service("typo", ["/nonexistent/program"], ready=lambda: False))
    expected = pytest.raises(NotUp, match="cannot start /nonexistent/program")
    with expected, observed.supervisor.running(up_within_seconds=1.0):
        pass


def test_a_preparation_that_fails_counts_as_a_failed_start(tmp_path: Path) -> None:
    tries: list[int] = []

    def before() -> None:
        tries.append(1)
        if len(tries) < 2:
            raise RuntimeError("the disk is full")

    with running(tmp_path, Service("database", ["sleep", "600"], before=before)) as observed:
        assert observed.wait_for("database", "up").last_exit == "cannot start: the disk is full"


def test_a_service_that_runs_once_is_up_when_it_has_done_its_work(tmp_path: Path) -> None:
    migrate = Service("migrate", ["sh", "-c", "sleep 0.1; touch migrated"], directory=tmp_path, once=True)
    web = Service(
        "web", ["sh", "-c", "test -e migrated && exec sleep 600"], directory=tmp_path, depends_on=["migrate"]
    )
    with running(tmp_path, migrate, web) as observed:
        assert observed.states("migrate") == ["starting", "starting", "up"]
        assert observed.wait_for("web", "up").restarts == 0


def test_services_stop_in_reverse_order(tmp_path: Path) -> None:
    with running(
        tmp_path,
        sleeper("database"),
        sleeper("worker", depends_on=["database"]),
        sleeper("web", depends_on=["worker"]),
    ) as observed:
        pass
    stops = [name for name, status in observed.said if status.state in {"stopping", "stopped"}]
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


def test_a_daemon_that_ignores_sigterm_does_not_survive_its_grace(tmp_path: Path) -> None:
    service = Service("stubborn", ["sh", "-c", STUBBORN], directory=tmp_path, grace_seconds=0.3)
    with running(tmp_path, service) as observed:
        daemon = pid_in(tmp_path / "daemon.pid")
        assert os.getsid(daemon) != os.getsid(observed.wait_for("stubborn", "up").pid or 0)
    assert is_gone(daemon)
    assert observed.wait_for("stubborn", "stopped").last_exit == "killed by SIGKILL"


def test_asked_to_stop_a_second_time_it_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    service = Service("stubborn", ["sh", "-c", STUBBORN], directory=tmp_path, grace_seconds=600.0)
    with running(tmp_path, service) as observed:
        daemon = pid_in(tmp_path / "daemon.pid")
        observed.supervisor.request_stop()
        observed.wait_for("stubborn", "stopping")
    assert is_gone(daemon)


def test_a_service_that_waits_for_its_next_try_stops_at_once(tmp_path: Path) -> None:
    observed = Observed(tmp_path, Service("broken", ["false"]))
    thread = threading.Thread(target=observed.supervisor.run)
    thread.start()
    observed.wait_for("broken", "restarting", restarts=3)
    observed.supervisor.request_stop()
    thread.join(PATIENCE_SECONDS)
    assert observed.states("broken")[-1] == "stopped"


SUPERVISE = """
    import sys
    from pathlib import Path
    from monitor.testbed.supervisor import Service, Supervisor
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
    """A supervisor in a process of its own; yields it with the pids of everything that it started."""
    argv = [sys.executable, "-c", textwrap.dedent(SUPERVISE), str(directory), STUBBORN, str(grace_seconds)]
    with subprocess.Popen(argv, cwd=ROOT) as process:
        try:
            wait_until(lambda: is_everything_up(directory))
            status = read_status(directory / "run" / "supervisor.json")
            assert status is not None
            pids = [each.pid or 0 for each in status.services.values()]
            yield process, [*pids, pid_in(directory / "daemon.pid")]
        finally:
            process.kill()


def is_everything_up(directory: Path) -> bool:
    status = read_status(directory / "run" / "supervisor.json")
    return status is not None and all(each.state == "up" for each in status.services.values())


def test_killing_the_supervisor_leaves_nothing(tmp_path: Path) -> None:
    with foreground(tmp_path, grace_seconds=0.2) as (process, pids):
        assert not any(is_gone(pid) for pid in pids)
        process.kill()
        wait_until(lambda: all(is_gone(pid) for pid in pids))


def test_a_new_supervisor_waits_until_the_services_of_a_killed_one_are_gone(tmp_path: Path) -> None:
    with foreground(tmp_path, grace_seconds=0.5) as (process, pids):
        process.kill()
        process.wait()
        with running(tmp_path, sleeper("next")):
            assert all(is_gone(pid) for pid in pids)


def test_ctrl_c_stops_everything_and_a_second_one_hurries(tmp_path: Path) -> None:
    with foreground(tmp_path, grace_seconds=600.0) as (process, pids):
        process.send_signal(signal.SIGINT)
        wait_until(lambda: state_of(tmp_path, "stubborn") == "stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert all(is_gone(pid) for pid in pids)


def state_of(directory: Path, name: str) -> str:
    status = read_status(directory / "run" / "supervisor.json")
    return "" if status is None else status.services[name].state


def test_there_is_one_supervisor_per_directory_and_the_second_is_told_which(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("worker")) as first:
        second = Observed(tmp_path, sleeper("worker"))
        with pytest.raises(AlreadySupervised, match=f"process {os.getpid()} is already the supervisor"):
            second.supervisor.run()
        assert lock.holder(first.run_directory) == os.getpid()
        assert not lock.is_free(first.run_directory)
    assert lock.holder(first.run_directory) is None
    assert lock.is_free(first.run_directory)


def test_the_status_file_is_whole_at_every_moment(tmp_path: Path) -> None:
    observed = Observed(tmp_path, Service("broken", ["false"]), sleeper("fine"))
    thread = threading.Thread(target=observed.supervisor.run)
    thread.start()
    wait_until(observed.status_file.exists)
    seen = set()
    while "restarting" not in observed.states("broken") or len(observed.said) < 12:
        document = json.loads(observed.status_file.read_text())
        assert document["pid"] == os.getpid()
        assert list(document["services"]) == ["broken", "fine"]
        seen |= {service["state"] for service in document["services"].values()}
    observed.supervisor.request_stop()
    thread.join(PATIENCE_SECONDS)
    assert seen <= set(STATES)
    final = read_status(observed.status_file)
    assert final is not None
    assert {status.state for status in final.services.values()} == {"stopped"}


def test_output_goes_to_a_log_per_service(tmp_path: Path) -> None:
    talker = Service("talker", ["sh", "-c", "echo out; echo err >&2; exec sleep 600"])
    with running(tmp_path, talker):
        wait_until(lambda: (tmp_path / "log" / "talker.log").read_text() == "out\nerr\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_service_runs_as_the_user_that_it_names(tmp_path: Path) -> None:
    with running(tmp_path, sleeper("unprivileged", user=(65534, 65534), directory=Path("/"))) as observed:
        pid = observed.wait_for("unprivileged", "up").pid
        status = Path(f"/proc/{pid}/status").read_text()
    assert "Uid:\t65534\t65534\t65534\t65534\n" in status
    assert "Groups:\t \n" in status


@pytest.mark.parametrize(
    ("services", "complaint"),
    [
        ([sleeper("a"), sleeper("a")], "two services of one name"),
        ([sleeper("a", depends_on=["b"])], "depends on b, which there is not"),
        ([sleeper("a", depends_on=["b"]), sleeper("b", depends_on=["a"])], "wait for each other"),
    ],
)
def test_services_that_cannot_be_ordered_are_refused(services: list[Service], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        start_order(services)


@pytest.mark.parametrize(
    ("exit_status", "words"),
    [(0, "ended with status 0"), (-9, "killed by SIGKILL"), (None, "its guard was killed")],
)
def test_how_a_program_ended_is_said_in_words(exit_status: int | None, words: str) -> None:
    assert describe_exit(exit_status) == words
